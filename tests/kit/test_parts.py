"""A part is all folders that share its name, and can be removed without anything else being touched."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit import parts
from sampletool.kit.parts import folders_of
from sampletool.kit.program import PACKAGE
from tests.kit.trees import commit

_FILES = {
    f"{PACKAGE}/__init__.py": "PROGRAM = 'prog'\n__version__ = '1'\n",
    f"{PACKAGE}/alpha/__init__.py": "",
    f"{PACKAGE}/alpha/commands/alpha/__init__.py": "",
    f"{PACKAGE}/beta/__init__.py": "",
    f"{PACKAGE}/beta/plays/alpha/play.py": "",
    f"{PACKAGE}/notes.txt": "no folder, no part\n",
    "tests/alpha/test_it.py": "",
    "tests/kit/alpha/test_it.py": "",
    "docs/beta/alpha/page.md": "",
    "docs/index.md": "* [a](alpha/a.md) <!-- alpha -->\n* [b](beta/b.md) <!-- beta -->\n# alpha\n",
    "pyproject.toml": "one = [\n  1,  # alpha\n  2,  # beta\n  3,  # alphabet\n]\n",
    "Makefile": "EXTRAS := [alpha]# alpha\n",
    f"{PACKAGE}/beta/template/pyproject.template": "two = 2  # alpha\n",
    "script.py": "kept = 1  # alpha\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of its own: the kit, two parts, and a folder that python has left."""
    for name, text in _FILES.items():
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_text(text)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(parts.__file__).parent, tmp_path / "tree" / PACKAGE / "kit", ignore=ignored)
    (tmp_path / "tree" / ".gitignore").write_text("__pycache__/\n")
    commit(tmp_path / "tree")
    (tmp_path / "tree" / PACKAGE / "old" / "__pycache__").mkdir(parents=True)
    return tmp_path / "tree"


def parts_command(tree: Path, *args: str) -> subprocess.CompletedProcess[str]:
    # A fresh interpreter: a forked one has loaded our kit, not that of the tree.
    command = [sys.executable, "-m", f"{PACKAGE}.kit.parts", *args]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def files_of(tree: Path) -> set[str]:
    files = (file for file in tree.rglob("*") if file.is_file() and not {".git", "kit", "__pycache__"} & {*file.parts})
    return {file.relative_to(tree).as_posix() for file in files} - {".gitignore"}


def test_a_part_is_a_folder_beside_the_kit(tree: Path) -> None:
    assert parts_command(tree).stdout == "alpha\nbeta\n"


def test_a_part_goes_with_every_folder_of_its_name_and_every_line_that_ends_in_it(tree: Path) -> None:
    (tree / PACKAGE / "alpha" / "mine.txt").write_text("git does not track it")

    removed = parts_command(tree, "remove", "alpha")

    assert removed.returncode == 0, removed.stderr
    assert files_of(tree) == {name for name in _FILES if "/alpha/" not in name} | {f"{PACKAGE}/alpha/mine.txt"}
    assert (tree / "tests" / "kit" / "alpha" / "test_it.py").exists()
    assert (tree / "pyproject.toml").read_text() == "one = [\n  2,  # beta\n  3,  # alphabet\n]\n"
    assert (tree / "docs" / "index.md").read_text() == "* [b](beta/b.md) <!-- beta -->\n# alpha\n"
    assert (tree / "Makefile").read_text() == ""
    assert (tree / PACKAGE / "beta" / "template" / "pyproject.template").read_text() == ""
    assert (tree / "script.py").read_text() == _FILES["script.py"]
    assert parts_command(tree).stdout == "beta\n"


def test_git_can_bring_a_removed_part_back(tree: Path) -> None:
    parts_command(tree, "remove", "alpha", "beta")
    assert parts_command(tree).stdout == ""

    subprocess.run(["git", "restore", "--staged", "--worktree", "."], cwd=tree, check=True)

    assert {name: (tree / name).read_text() for name in _FILES} == _FILES


@pytest.mark.parametrize("changed", ["pyproject.toml", f"{PACKAGE}/alpha/__init__.py"])
def test_nothing_is_removed_from_a_tree_with_changes(tree: Path, changed: str) -> None:
    (tree / changed).write_text("changed\n")

    refused = parts_command(tree, "remove", "alpha")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Commit them first" in refused.stderr
    assert files_of(tree) >= {name for name in _FILES if "/kit/" not in name}


@pytest.mark.parametrize("name", ["kit", "notes.txt", "old", "gone", ""])
def test_what_is_no_part_is_not_removed(tree: Path, name: str) -> None:
    refused = parts_command(tree, "remove", "alpha", name)

    assert refused.returncode == 1
    assert "There are: alpha, beta." in refused.stderr
    assert files_of(tree) >= {name for name in _FILES if "/kit/" not in name}


def test_only_the_outermost_folders_count_and_none_in_the_kit() -> None:
    tracked = ["p/a/x/a/y", "p/a/z", "p/kit/a/y", "docs/kit/a/y", "a/file", "b/a", "docs/b/a/c"]

    assert folders_of({"a"}, tracked) == {"p/a", "a", "docs/b/a"}
