"""A fork takes a newer kit and keeps its own code. Wheels and sdists carry the whole kit."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.checksums import kit_files
from sampletool.kit.kit_source import read_kit
from sampletool.kit.program import KIT_DIRECTORY, PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import commit, copy_tree, make_environment, tracked_files

_AUTHOR = ["-c", "user.name=n", "-c", "user.email=n@example.org"]


def run(tree: Path, *command: str, **environ: str) -> str:
    """Run a command in a directory, and return what it prints. Fail if it fails."""
    ran = subprocess.run(
        command,
        cwd=tree,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    return ran.stdout


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """Return a checkout of a newer version of this project."""
    tree = copy_tree(ROOT, tmp_path / "newer")
    kit = tree / PACKAGE / "kit"
    revision = int((kit / "REVISION").read_text())
    (kit / "REVISION").write_text(f"{revision + 1}\n")
    (kit / "fresh.py").write_text('"""New in this kit."""\n')
    commit(tree)
    return tree


@pytest.fixture
def passing_make(tmp_path: Path) -> Path:
    """Return a directory with a program `make` that finds nothing wrong, for `make check`.

    What the real one finds in a fork, and how long it takes, is tested in test_check.py.
    """
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "make").write_text("#!/bin/sh\necho make $1 ran\n")
    (directory / "make").chmod(0o755)
    return directory


def test_a_fork_takes_the_newer_kit_and_keeps_its_own_code(
    tool: Tool,
    newer: Path,
    passing_make: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = shutil.which("make")
    assert make is not None
    tool("fork", "acme-stock", "--command", "stock")
    fork = tool.cwd / "acme-stock"
    (fork / "acme_stock" / "own.py").write_text('"""Code of its own."""\n')
    run(fork, "git", "add", "-A")
    run(fork, "git", *_AUTHOR, "commit", "-qm", "Code of its own")
    python = str(make_environment(fork))
    monkeypatch.delenv("PYTHONPATH")

    path = f"{passing_make}:{os.environ['PATH']}"
    printed = run(fork, make, "upgrade", f"FROM={newer}", PATH=path)

    assert "make check ran" in printed
    changed = run(fork, "git", "status", "--porcelain").splitlines()
    assert sorted(line[3:] for line in changed) == [
        "acme_stock/kit/CHECKSUMS",
        "acme_stock/kit/REVISION",
        "acme_stock/kit/fresh.py",
    ]
    assert run(fork, python, "-m", "acme_stock", "--version").startswith("stock ")


@pytest.mark.parametrize("form", ["wheel", "sdist"])
def test_wheels_and_sdists_carry_the_whole_kit(archives: dict[str, Path], form: str) -> None:
    assert read_kit(archives[form]) == kit_files(Path(KIT_DIRECTORY))


def test_the_archives_of_a_fork_carry_its_list_of_checksums(tool: Tool) -> None:
    builder = Path(sys.prefix, "bin", "hatchling")
    if not builder.exists():
        pytest.skip("hatchling is not installed: make .venv/.testable")
    tool("fork", "acme")
    fork = tool.cwd / "acme"

    run(fork, str(builder), "build", "-d", str(tool.cwd / "dist"))

    in_fork = {path for path in tracked_files(fork) if path.startswith("acme/kit/")}
    for pattern in ("*.whl", "*.tar.gz"):
        (archive,) = (tool.cwd / "dist").glob(pattern)
        carried = {f"acme/kit/{path}" for path in read_kit(archive)}
        assert "acme/kit/CHECKSUMS" in carried
        assert carried == in_fork
