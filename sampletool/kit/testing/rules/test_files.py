"""Each file of the package says what it contains, and is in the repository."""

import ast
import subprocess
from pathlib import Path

from ...project import ROOT
from ..how_to import fail_if_any, relative
from .own_code import own_python_files

_HEADING = "Code"
_LIST_IGNORED = ["check-ignore", "--verbose", "--stdin"]
_EMPTY_NAMES = {"utils", "helpers", "common", "misc"}


def test_no_file_has_a_name_that_could_mean_anything() -> None:
    faults = []
    for file in own_python_files():
        if file.stem in _EMPTY_NAMES:
            faults.append(f"{relative(file)}: this name says nothing about the content.")

    fail_if_any(faults, "Name the file after what it contains", _HEADING)


def test_each_file_has_a_docstring() -> None:
    faults = []
    for file in own_python_files():
        if ast.get_docstring(ast.parse(file.read_text())) is None:
            faults.append(f"{relative(file)}: there is no docstring.")

    fail_if_any(faults, "Begin the file with a docstring that says what it is for", _HEADING)


def test_git_ignores_no_file(tmp_path: Path) -> None:
    files = [relative(file) for file in own_python_files()]
    files += [relative(file) for file in sorted((ROOT / "tests").rglob("*.py"))]
    # In a repository of its own, git ignores only what .gitignore names.
    subprocess.run(["git", "init", "-q", tmp_path], check=True)

    ran = subprocess.run(
        ["git", f"--git-dir={tmp_path}/.git", f"--work-tree={ROOT}", *_LIST_IGNORED],
        cwd=ROOT,
        input="\n".join(files),
        capture_output=True,
        text=True,
        check=False,
    )

    faults = []
    for line in ran.stdout.splitlines():
        pattern, _, file = line.partition("\t")
        faults.append(f"{file}: git ignores it because of {pattern}.")
    fail_if_any(faults, "Begin the pattern in .gitignore with a slash", _HEADING)
