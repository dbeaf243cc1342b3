"""Every file of the package says what it promises, and has a name that says what it owns."""

import subprocess
from pathlib import Path

from sampletool.kit.program import PACKAGE
from tests.kit.trees import ROOT

_PACKAGE = ROOT / PACKAGE


def test_there_is_no_drawer_for_everything() -> None:
    names = {file.stem for file in _PACKAGE.rglob("*.py")}

    assert not names & {"utils", "helpers", "common", "misc"}


def test_every_file_says_what_it_promises() -> None:
    silent = [file for file in _PACKAGE.rglob("*.py") if not file.read_text().startswith('"""')]

    assert silent == []


def test_git_ignores_no_file_whatever_a_group_is_called(tmp_path: Path) -> None:
    files = [
        str(file.relative_to(ROOT))
        for top in (PACKAGE, "tests", "docs")
        for file in (ROOT / top).rglob("*.py")
    ]
    files += [
        f"{PACKAGE}/stock/commands/{group}/add.py"
        for group in ("build", "dist", "venv", "coverage")
    ]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    git = ["git", f"--git-dir={tmp_path}/.git", f"--work-tree={ROOT}"]

    asked = subprocess.run(
        [*git, "check-ignore", "-v", *files], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (asked.stdout, asked.returncode) == ("", 1), "begin the pattern in .gitignore with /"
