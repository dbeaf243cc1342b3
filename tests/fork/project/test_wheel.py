"""An installed wheel creates the same projects as a checkout, and is small."""

import filecmp
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from sampletool.fork.carried import archive_of, carried_paths
from sampletool.fork.project import TEMPLATE, offered_parts
from sampletool.kit.program import PACKAGE
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import tracked_files

_MAX_WHEEL_BYTES = 1_250_000
"""The package takes about 900,000 bytes, the man pages 60,000, and the archive 240,000.

Why it is not smaller is explained in docs/kit/decisions.md.
"""


@pytest.mark.parametrize("kit", ["vendored", "dependency"])
def test_a_wheel_and_a_checkout_create_the_same_project(
    installed: dict[str, str],
    tool: Tool,
    kit: str,
) -> None:
    arguments = ["fork", "acme", "--with", ",".join(offered_parts()), "--ci", "github"]
    if kit == "dependency":
        arguments += ["--kit", "dependency", "--kit-from", PACKAGE]
    command = [sys.executable, "-m", PACKAGE, *arguments, "--to", "wheel"]

    ran = subprocess.run(
        command,
        cwd=tool.cwd,
        env=installed,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stdout
    assert tool(*arguments, "--to", "checkout").status == 0
    files = tracked_files(tool.cwd / "checkout")
    assert tracked_files(tool.cwd / "wheel") == files
    compared = filecmp.cmpfiles(tool.cwd / "wheel", tool.cwd / "checkout", files, shallow=False)
    assert compared == (files, [], [])


def test_the_wheel_is_small_and_has_no_pictures(archives: dict[str, Path]) -> None:
    wheel = archives["wheel"]
    names = zipfile.ZipFile(wheel).namelist()

    assert wheel.stat().st_size < _MAX_WHEEL_BYTES
    assert [name for name in names if name.endswith((".png", ".svg", ".jpg", ".gif"))] == []


def test_the_archive_has_only_the_template_tests_of_parts_and_four_files(tmp_path: Path) -> None:
    paths = carried_paths()

    archive = tmp_path / "carried.tar.bz2"
    archive.write_bytes(archive_of(paths))
    with tarfile.open(archive) as tar:
        assert tar.getnames() == paths
    assert f"{TEMPLATE}pyproject.template" in paths
    others = [path for path in paths if not path.startswith(("tests/", TEMPLATE))]
    assert others == [".gitignore", "LICENSE", "constraints.txt"]
    folders = {path.split("/")[1] for path in paths if path.startswith("tests/")}
    assert folders == {"__init__.py", *offered_parts()}


def test_the_wheel_has_the_template_only_in_the_archive(archives: dict[str, Path]) -> None:
    names = zipfile.ZipFile(archives["wheel"]).namelist()

    assert f"{PACKAGE}/fork/carried.tar.bz2" in names
    assert [name for name in names if name.startswith(TEMPLATE)] == []


def test_without_the_module_bz2_the_error_says_so(
    installed: dict[str, str],
    tmp_path: Path,
) -> None:
    # This module takes the place of the one in the standard library.
    (tmp_path / "bz2.py").write_text('raise ImportError("Python was built without bzip2.")\n')
    environment = {**installed, "PYTHONPATH": f"{tmp_path}:{installed['PYTHONPATH']}"}

    ran = subprocess.run(
        [sys.executable, "-m", PACKAGE, "fork", "acme", "--json"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    error = json.loads(ran.stdout)["error"]
    assert (ran.returncode, error["code"]) == (4, "BZ2_MISSING")
    assert not (tmp_path / "acme").exists()


def test_the_same_files_give_the_same_archive() -> None:
    paths = carried_paths()[:3]

    assert archive_of(paths) == archive_of(paths)
