"""kit/parts.py: a part is removed with everything that is about it, and nothing else is."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.parts import find_folders
from sampletool.kit.program import KIT, KIT_DIRECTORY, PACKAGE
from sampletool.kit.testing.trees import commit

_FILES = {
    f"{PACKAGE}/__init__.py": "PROGRAM = 'prog'\n__version__ = '1'\n",
    f"{PACKAGE}/alpha/__init__.py": "",
    f"{PACKAGE}/alpha/commands/alpha/__init__.py": "",
    f"{PACKAGE}/beta/__init__.py": "",
    f"{PACKAGE}/beta/plays/alpha/play.py": "",
    f"{PACKAGE}/notes.txt": "a file is not a part\n",
    "alpha/readme.txt": "a folder of the user\n",
    "tests/alpha/test_it.py": "",
    "tests/kit/alpha/test_it.py": "",
    "docs/beta/alpha/page.md": "",
    "docs/index.md": "* [a](alpha/a.md) <!-- alpha -->\n* [b](beta/b.md) <!-- beta -->\n# alpha\n",
    "pyproject.toml": "one = [\n  1,  # alpha\n  2,  # beta\n  3,  # alphabet\n]\n",
    "Makefile": "EXTRAS := [alpha]# alpha\n",
    f"{PACKAGE}/beta/template/pyproject.template": "two = 2  # alpha\n",
    "script.py": "kept = 1  # alpha\n",
}
_FOLDERS_OF_ALPHA = (
    f"{PACKAGE}/alpha/",
    f"{PACKAGE}/beta/plays/alpha/",
    "tests/alpha/",
    "docs/beta/alpha/",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a project with the kit and two parts."""
    tree = tmp_path / "tree"
    for name, text in _FILES.items():
        write(tree / name, text)
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(KIT_DIRECTORY, tree / PACKAGE / "kit", ignore=ignored)
    write(tree / ".gitignore", "__pycache__/\n")
    commit(tree)
    return tree


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def parts_command(tree: Path, *args: str) -> subprocess.CompletedProcess[str]:
    # A fresh interpreter: a forked one has loaded our kit, not that of the tree.
    command = [sys.executable, "-m", f"{KIT}.parts", *args]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)


def files_in(tree: Path) -> dict[str, str]:
    """Return the text of each file of the project, without those of the kit and of git."""
    texts = {}
    for path in tree.rglob("*"):
        name = path.relative_to(tree).as_posix()
        is_ours = name.startswith((".git", f"{PACKAGE}/kit/")) or "__pycache__" in name
        if path.is_file() and not is_ours:
            texts[name] = path.read_text()
    return texts


def test_a_part_is_removed_with_its_folders_and_the_lines_that_have_its_mark(tree: Path) -> None:
    write(tree / PACKAGE / "alpha" / "mine.txt", "git does not track it")

    removed = parts_command(tree, "remove", "alpha")

    assert removed.returncode == 0, removed.stderr
    expected = dict(_FILES)
    for name in _FILES:
        if name.startswith(_FOLDERS_OF_ALPHA):
            del expected[name]
    expected[f"{PACKAGE}/alpha/mine.txt"] = "git does not track it"
    expected["pyproject.toml"] = "one = [\n  2,  # beta\n  3,  # alphabet\n]\n"
    expected["docs/index.md"] = "* [b](beta/b.md) <!-- beta -->\n# alpha\n"
    expected["Makefile"] = ""
    expected[f"{PACKAGE}/beta/template/pyproject.template"] = ""
    assert files_in(tree) == expected
    assert parts_command(tree).stdout == "beta\n"


def test_the_command_shows_what_it_removes(tree: Path) -> None:
    removed = parts_command(tree, "remove", "alpha")

    assert removed.stdout.splitlines()[:9] == [
        "Removing:",
        "  docs/beta/alpha/",
        f"  {PACKAGE}/alpha/",
        f"  {PACKAGE}/beta/plays/alpha/",
        "  tests/alpha/",
        "  1 line of Makefile",
        "  1 line of docs/index.md",
        "  1 line of pyproject.toml",
        f"  1 line of {PACKAGE}/beta/template/pyproject.template",
    ]


def test_a_dry_run_shows_the_same_and_removes_nothing(tree: Path) -> None:
    write(tree / "script.py", "changed = 2\n")

    forecast = parts_command(tree, "remove", "--dry-run", "alpha").stdout
    files_after = files_in(tree)
    run_git(tree, "checkout", "-q", ".")
    removed = parts_command(tree, "remove", "alpha").stdout

    assert files_after == {**_FILES, "script.py": "changed = 2\n"}
    assert forecast.splitlines()[0] == "This would be removed:"
    assert forecast.splitlines()[1:] == removed.splitlines()[1:-2]


def test_a_file_without_lines_of_the_part_is_not_written(tree: Path) -> None:
    """make builds the environment again if pyproject.toml is newer."""
    (tree / "pyproject.toml").write_text("two = 2  # beta\n")
    run_git(tree, "commit", "-qam", "without alpha")
    before = (tree / "pyproject.toml").stat().st_mtime_ns

    parts_command(tree, "remove", "alpha")

    assert (tree / "pyproject.toml").stat().st_mtime_ns == before


def test_the_printed_command_undoes_the_removal(tree: Path) -> None:
    removed = parts_command(tree, "remove", "alpha", "beta")
    assert parts_command(tree).stdout == ""

    (undo,) = [line for line in removed.stdout.splitlines() if line.startswith("Undo:")]
    subprocess.run(["sh", "-c", undo.removeprefix("Undo:")], cwd=tree, check=True)

    assert files_in(tree) == _FILES


@pytest.mark.parametrize("changed", ["pyproject.toml", f"{PACKAGE}/alpha/__init__.py"])
def test_nothing_is_removed_from_a_tree_with_changes(tree: Path, changed: str) -> None:
    (tree / changed).write_text("changed\n")

    refused = parts_command(tree, "remove", "alpha")

    assert (refused.returncode, refused.stdout) == (1, "")
    assert "Commit them first" in refused.stderr
    assert files_in(tree) == {**_FILES, changed: "changed\n"}


@pytest.mark.parametrize("name", ["kit", "notes.txt", "gone", ""])
def test_only_parts_can_be_removed(tree: Path, name: str) -> None:
    refused = parts_command(tree, "remove", "alpha", name)

    assert refused.returncode == 1
    assert f"No such part: {name}. The parts are: alpha, beta." in refused.stderr
    assert files_in(tree) == _FILES


@pytest.mark.parametrize("has_part_with_its_name", [False, True], ids=["", "a_part_has_its_name"])
def test_the_package_is_never_removed(tree: Path, has_part_with_its_name: bool) -> None:
    if has_part_with_its_name:
        write(tree / PACKAGE / PACKAGE / "__init__.py", "")
        run_git(tree, "add", ".")
        run_git(tree, "commit", "-qm", "a part with the name of the package")
    before = files_in(tree)

    refused = parts_command(tree, "remove", PACKAGE)

    assert refused.returncode == 1
    assert f"{PACKAGE} is the package of the program" in refused.stderr
    assert files_in(tree) == before


def test_a_command_of_another_part_with_the_name_of_the_part_is_kept(tree: Path) -> None:
    write(tree / PACKAGE / "beta" / "commands" / "alpha" / "add.py", "")
    run_git(tree, "add", ".")
    run_git(tree, "commit", "-qm", "a group of commands called alpha")

    parts_command(tree, "remove", "alpha")

    assert (tree / PACKAGE / "beta" / "commands" / "alpha" / "add.py").exists()
    assert not (tree / PACKAGE / "alpha" / "__init__.py").exists()


def test_the_parts_of_an_installed_package_are_left_alone(tree: Path) -> None:
    """Otherwise, `python -m sampletool.kit.parts` would work on the package in site-packages."""
    (tree / "pyproject.toml").unlink()

    refused = parts_command(tree, "remove", "alpha")

    assert refused.returncode == 1
    assert "is an installed package, not a project" in refused.stderr
    assert "KIT_PACKAGE=ledger" in refused.stderr


@pytest.mark.parametrize("args", [["remove"], ["remove", "--dry-run"], ["remove", "-x"], ["list"]])
def test_a_wrong_command_line_shows_the_usage(tree: Path, args: list[str]) -> None:
    refused = parts_command(tree, *args)

    assert refused.returncode == 1
    assert refused.stderr.startswith(f"Usage: python -m {KIT}.parts\n")


def test_of_two_folders_in_each_other_the_outer_one_counts() -> None:
    paths = [f"{PACKAGE}/a/x/a/y", f"{PACKAGE}/a/z", "docs/b/a/c"]
    paths += [f"{PACKAGE}/kit/a/y", "docs/kit/a/y", "a"]

    assert find_folders({"a"}, paths) == {f"{PACKAGE}/a", "docs/b/a"}


def run_git(tree: Path, *args: str) -> None:
    author = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    subprocess.run(["git", *author, *args], cwd=tree, check=True)
