"""The file .gitignore of the project, which `tool fork` copies."""

import subprocess
from pathlib import Path

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT


def test_git_ignores_no_command_whatever_its_group_is_called(tmp_path: Path) -> None:
    files = []
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
