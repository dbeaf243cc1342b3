"""The kit takes its names from the package of the program."""

import ast
import json
import os
import pwd
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT


@pytest.fixture
def other_project(tmp_path: Path) -> Path:
    """Return a directory with the kit in a package with other names, and a workspace."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / PACKAGE / "kit", tmp_path / "other" / "kit", ignore=ignored)
    names = '"""Other."""\nPROGRAM = "oth-er"\n__version__ = "1"\n'
    (tmp_path / "other" / "__init__.py").write_text(names)
    (tmp_path / "other" / "__main__.py").write_text(
        "from .kit.start import main\n\nmain('other')\n"
    )
    (tmp_path / "oth-er.toml").write_text("[settings]\nlevel = 1\n")
    return tmp_path


def data_of(project: Path, *arguments: str, **environ: str) -> Any:
    """Run a command of the other project, and return the data of its response."""
    ran = subprocess.run(
        [sys.executable, "-m", "other", *arguments, "--json"],
        cwd=project,
        env={**os.environ, **environ},
        capture_output=True,
        check=False,
    )
    return json.loads(ran.stdout)["data"]


def test_the_kit_takes_its_names_from_the_package_around_it(other_project: Path) -> None:
    jobs = data_of(other_project, "config", "get", "jobs", OTH_ER_JOBS="3")
    level = data_of(other_project, "config", "get", "level")
    locks = data_of(other_project, "lock", "list")

    assert jobs["value"] == 3
    assert level["source"] == "project"
    assert locks == {"locks": []}


def test_the_console_script_is_the_program() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]

    assert scripts == {PROGRAM: f"{PACKAGE}.__main__:main"}


_READ_BY_ANY_PYTHON = ("__init__.py", "__main__.py", "kit/__init__.py", "kit/start.py")


@pytest.mark.parametrize("file", _READ_BY_ANY_PYTHON)
def test_an_old_python_can_parse_the_files_that_refuse_it(file: str) -> None:
    ast.parse((ROOT / PACKAGE / file).read_text(), feature_version=(3, 4))


def old_pythons() -> list[Path]:
    """Return the old versions of Python 3 that pyenv has installed for this user."""
    home = pwd.getpwuid(os.geteuid()).pw_dir
    found = []
    for path in sorted(Path(home, ".pyenv", "versions").glob("*/bin/python")):
        version = path.parts[-3]
        if re.match(r"3\.\d\.|3\.10", version):
            found.append(path)
    return found


def test_each_installed_old_python_is_refused_with_a_response() -> None:
    for python in old_pythons():
        command = [str(python), "-B", "-m", PACKAGE, "config", "list"]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

        assert (ran.returncode, ran.stderr) == (4, ""), python
        assert json.loads(ran.stdout)["error"]["code"] == "PYTHON_TOO_OLD"
