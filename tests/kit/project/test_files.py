"""Every file of the package has a docstring and a name that says what it contains."""

import subprocess
from pathlib import Path

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT

_PACKAGE = ROOT / PACKAGE


def test_no_file_has_a_name_that_could_mean_anything() -> None:
    names = {file.stem for file in _PACKAGE.rglob("*.py")}

    assert not names & {"utils", "helpers", "common", "misc"}


def test_every_file_has_a_docstring() -> None:
    without = [file for file in _PACKAGE.rglob("*.py") if not file.read_text().startswith('"""')]

    assert without == []


def test_git_ignores_no_file_whatever_a_group_is_called(tmp_path: Path) -> None:
    files = []
    for top in (PACKAGE, "tests", "docs"):
        for file in (ROOT / top).rglob("*.py"):
            files.append(str(file.relative_to(ROOT)))
    for group in ("build", "dist", "venv", "coverage"):
        files.append(f"{PACKAGE}/stock/commands/{group}/add.py")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    git = ["git", f"--git-dir={tmp_path}/.git", f"--work-tree={ROOT}"]

    ran = subprocess.run(
        [*git, "check-ignore", "-v", *files],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stdout == "", "begin the pattern in .gitignore with /"
    assert ran.returncode == 1
