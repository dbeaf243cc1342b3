"""`make new-command` writes a command that works at once; it replaces nothing. test_how_to.py sees that it is clean."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import commit


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A project of the kit and a part with a command."""
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / PACKAGE / "kit", tree / PACKAGE / "kit", ignore=ignored)
    for name in ("__init__.py", "__main__.py"):
        shutil.copy(ROOT / PACKAGE / name, tree / PACKAGE)
    for folder in ("shop", "shop/commands", "shop/commands/shelf"):
        (tree / PACKAGE / folder).mkdir()
        (tree / PACKAGE / folder / "__init__.py").write_text('"""Mine."""\n')
    (tree / PACKAGE / "shop" / "commands" / "sell.py").write_text('"""Mine."""\n')
    (tree / ".gitignore").write_text("__pycache__/\n")
    commit(tree)
    return tree


def new_command(tree: Path, name: str) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "PYTHONPATH": str(tree)}
    # A fresh interpreter: a forked one has loaded our kit, not that of the tree.
    call = [sys.executable, "-m", f"{PACKAGE}.kit.new_command", name]
    return subprocess.run(call, cwd=tree, env=environ, capture_output=True, text=True, check=False)


def changed(tree: Path) -> list[str]:
    asked = ["git", "status", "--porcelain", "--untracked-files=all"]
    return subprocess.run(asked, cwd=tree, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_new_group_is_a_new_part(tree: Path, tool: Tool) -> None:
    ran = new_command(tree, "gift-box/open-it")

    assert ran.returncode == 0, ran.stderr
    place = f"{PACKAGE}/gift_box"
    assert sorted(ran.stdout.splitlines()) == sorted(line.removeprefix("?? ") for line in changed(tree))
    assert f"{place}/commands/gift_box/open_it.py" in ran.stdout
    assert "tests/gift_box/commands/test_gift_box_open_it.py" in ran.stdout
    copy = Tool({**tool.environ, "PYTHONPATH": str(tree)}, tool.cwd)
    assert copy("gift-box", "open-it", "Ann").data == {"greeting": "Hello Ann, this is work."}


def test_a_group_that_is_there_gets_another_command(tree: Path) -> None:
    ran = new_command(tree, "shelf/clear")

    assert f"{PACKAGE}/shop/commands/shelf/clear.py\n" in ran.stdout
    assert [line for line in changed(tree) if not line.startswith("??")] == []
    assert (tree / "tests" / "shop" / "commands" / "test_shelf_clear.py").exists()


def test_nothing_is_replaced(tree: Path) -> None:
    new_command(tree, "shelf/clear")
    (tree / PACKAGE / "shop" / "commands" / "shelf" / "clear.py").unlink()
    before = changed(tree)

    ran = new_command(tree, "shelf/clear")

    assert ran.returncode == 1
    assert "Already there: tests/shop/commands/test_shelf_clear.py." in ran.stderr
    assert changed(tree) == before


@pytest.mark.parametrize("name", ["kit/x", "config/x", "lock/list", "doctor/x", "sell/x"])
def test_a_command_or_a_group_of_the_kit_is_no_group(tree: Path, name: str) -> None:
    ran = new_command(tree, name)

    assert (ran.returncode, changed(tree)) == (1, [])
    assert "choose another group" in ran.stderr


@pytest.mark.parametrize(
    "name", ["", "x", "/x", "x/", "a/b/c", "../x", "A/b", "a_b/c", "1a/b", "a/class", "a--b/c", "a/b\n"]
)
def test_a_name_is_group_and_name(tree: Path, name: str) -> None:
    ran = new_command(tree, name)

    assert (ran.returncode, changed(tree)) == (1, [])
    assert ran.stderr.startswith("Usage: make new-command NAME=group/name")


def test_no_name_is_read_by_the_shell_of_make(tree: Path) -> None:
    for path in ("pyproject.toml", "constraints.txt", ".venv/.ready"):
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).touch()
    (tree / ".venv" / "bin").mkdir()
    (tree / ".venv" / "bin" / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tree / ".venv" / "bin" / "python").chmod(0o755)
    (tree / "Makefile").write_text(f"include {PACKAGE}/kit/kit.mk\n")

    call = ["make", "new-command", "NAME=a/b'; touch made; '"]
    ran = subprocess.run(call, cwd=tree, capture_output=True, text=True, check=False)

    assert "Usage: make new-command" in ran.stderr
    assert not (tree / "made").exists()
