"""sampletool/kit/new_command.py: `make new-command` creates a command that works, and its tests.

test_how_to.py checks that linters and the rules of the project accept what it creates.
"""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from sampletool.kit import new_command as generator
from sampletool.kit.new_command import NewCommand
from sampletool.kit.part_discovery import part_names
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import (
    FEW_PLUGINS,
    commit,
    copy_template,
    copy_tree,
    make_environment,
)


@pytest.fixture
def tree(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a project that consists of the kit and a part with a group and two commands."""
    return copy_template(_tree(tmp_path_factory.getbasetemp()), tmp_path / "tree")


@cache
def _tree(directory: Path) -> Path:
    # It is created once, with bytecode: each test would compile the kit otherwise.
    tree = directory / "new-command" / "tree"
    unfinished = shutil.ignore_patterns("*.pyc.*")
    shutil.copytree(ROOT / PACKAGE / "kit", tree / PACKAGE / "kit", ignore=unfinished)
    for name in ("__init__.py", "__main__.py"):
        shutil.copy(ROOT / PACKAGE / name, tree / PACKAGE)
    for folder in ("shop", "shop/commands", "shop/commands/shelf"):
        (tree / PACKAGE / folder).mkdir()
        (tree / PACKAGE / folder / "__init__.py").write_text('"""Mine."""\n')
    for name in ("sell", "shelf/fill"):
        (tree / PACKAGE / "shop" / "commands" / f"{name}.py").write_text('"""Mine."""\n')
    (tree / "pyproject.toml").touch()
    (tree / ".gitignore").write_text("__pycache__/\n")
    commit(tree)
    return tree


def new_command(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the generator of the project, and return its result."""
    # A fresh interpreter: a forked process would have imported the kit of this project.
    return subprocess.run(
        [sys.executable, "-m", f"{PACKAGE}.kit.new_command", *arguments],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )


def listed_files(ran: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the paths that the generator lists as created."""
    listed, _, _ = ran.stdout.removeprefix("Created:\n").partition("The command works already.")
    return [line.strip() for line in listed.splitlines()]


def changed(tree: Path) -> list[str]:
    """Return what differs from the commit: `?? path` for each new file."""
    status = ["git", "status", "--porcelain", "--untracked-files=all"]
    ran = subprocess.run(status, cwd=tree, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def run_in(tree: Path, tool: Tool) -> Tool:
    """Return the tool of the project in `tree`."""
    return Tool({**tool.environ, "PYTHONPATH": str(tree)}, tool.cwd)


# The generated command, and its tests


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a whole project without parts. Its tests can be run."""
    project = copy_tree(ROOT, tmp_path / "project")
    for part in part_names():
        for folder in (PACKAGE, "tests", "docs"):
            shutil.rmtree(project / folder / part, ignore_errors=True)
    make_environment(project)
    return project


def run_tests(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run tests of the project in its own environment."""
    options = ["-q", "-n0", "-p", "no:cacheprovider", "-rA", *FEW_PLUGINS]
    return subprocess.run(
        [project / ".venv" / "bin" / "python", "-m", "pytest", *options, *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_generated_tests_pass(project: Path) -> None:
    for arguments in (
        ["gift-box/open-it"],
        ["gift-box/import", "--plain"],
        ["count", "--part", "gift_box"],
        ["class/add", "--plain"],
    ):
        created = new_command(project, *arguments)
        assert created.returncode == 0, created.stderr

    ran = run_tests(project, "tests/gift_box", "tests/class_")

    assert ran.returncode == 0, ran.stdout
    assert "14 passed" in ran.stdout


_SAFE = """    with context.editing(context.workspace / FILE, dry_run=dry_run) as file:
        counted = count(file, thing, more)
        file.write()
"""
_NAIVE = """    with context.editing(context.workspace / FILE, dry_run=True) as file:
        counted = count(file, thing, more)
        if not dry_run:
            (context.workspace / FILE).write_text(file.text)
"""


def test_the_generated_tests_fail_without_the_lock_and_the_atomic_write(project: Path) -> None:
    new_command(project, "gift-box/open-it")
    module = project / PACKAGE / "gift_box" / "commands" / "gift_box" / "open_it.py"
    code = module.read_text()
    assert _SAFE in code

    module.write_text(code.replace(_SAFE, _NAIVE))
    ran = run_tests(project, "tests/gift_box")

    tests = "tests/gift_box/commands/test_gift_box_open_it.py"
    assert f"PASSED {tests}::test_numbers_are_added_up" in ran.stdout
    assert f"FAILED {tests}::test_kill_9_at_each_step" in ran.stdout
    assert "for writing, so `kill -9` can leave half of the text" in ran.stdout


def test_a_kit_outside_of_the_package_is_imported_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(generator, "KIT", "other.kit")
    command = NewCommand(part="gift_box", group="gift-box", name="open-it", is_plain=False)

    files = generator.new_files(command)

    code = files[f"{PACKAGE}/gift_box/commands/gift_box/open_it.py"]
    tests = files["tests/gift_box/commands/test_gift_box_open_it.py"]
    assert "import typer\nfrom other.kit.context import Context\n" in code
    assert "import pytest\nfrom other.kit.testing.stopping import" in tests
    assert ".kit" not in code.replace("other.kit", "")


# Where the files are


def test_a_new_group_is_a_new_part(tree: Path, tool: Tool) -> None:
    ran = new_command(tree, "gift-box/open-it", "--plain")

    assert ran.returncode == 0, ran.stderr
    created = listed_files(ran)
    assert sorted(created) == sorted(line.removeprefix("?? ") for line in changed(tree))
    assert f"{PACKAGE}/gift_box/commands/gift_box/open_it.py" in created
    assert "tests/gift_box/commands/test_gift_box_open_it.py" in created
    greeting = run_in(tree, tool)("gift-box", "open-it", "Ann").data
    assert greeting == {"greeting": "Hello Ann, this is work."}


@pytest.mark.usefixtures("workspace")
def test_without_plain_the_command_changes_a_file(tree: Path, tool: Tool) -> None:
    new_command(tree, "gift-box/open-it")

    counted = run_in(tree, tool)("gift-box", "open-it", "apple", "3").data

    assert counted == {"effect": "created", "thing": "apple", "number": 3}


def test_an_existing_group_gets_another_command(tree: Path) -> None:
    ran = new_command(tree, "shelf/clear")

    assert f"{PACKAGE}/shop/commands/shelf/clear.py\n" in ran.stdout
    assert [line for line in changed(tree) if not line.startswith("??")] == []
    assert (tree / "tests" / "shop" / "commands" / "test_shelf_clear.py").exists()


def test_a_command_at_the_top_level_belongs_to_the_only_part(tree: Path, tool: Tool) -> None:
    ran = new_command(tree, "add", "--plain")

    assert f"{PACKAGE}/shop/commands/add.py" in ran.stdout
    assert "tests/shop/commands/test_add.py" in ran.stdout
    assert run_in(tree, tool)("add", "Ann").data == {"greeting": "Hello Ann, this is work."}


def test_a_command_named_like_a_keyword_has_a_file_with_an_underscore(
    tree: Path,
    tool: Tool,
) -> None:
    ran = new_command(tree, "import", "--plain")

    assert f"{PACKAGE}/shop/commands/import_.py" in ran.stdout
    assert run_in(tree, tool)("import", "Ann").data == {"greeting": "Hello Ann, this is work."}


@pytest.mark.parametrize(
    ("name", "part", "path"),
    [
        ("add", "ledger", "ledger/commands/add.py"),
        ("add", "shop", "shop/commands/add.py"),
        ("queue/add", "jobs", "jobs/commands/queue/add.py"),
        ("drawer/open", "shop", "shop/commands/drawer/open.py"),
        ("shelf/clear", "shop", "shop/commands/shelf/clear.py"),
    ],
)
def test_the_part_can_be_named(tree: Path, name: str, part: str, path: str) -> None:
    ran = new_command(tree, name, "--part", part)

    assert ran.returncode == 0, ran.stderr
    assert f"{PACKAGE}/{path}\n" in ran.stdout


def test_the_next_steps_run_the_command_and_its_tests(tree: Path) -> None:
    ran = new_command(tree, "gift-box/open-it")

    steps = ran.stdout.partition("Next:\n")[2].splitlines()
    program, *words = steps[0].split()
    assert Path(program).name == PROGRAM
    assert words == ["gift-box", "open-it", "--help"]
    assert steps[1] == "  make test TESTS=tests/gift_box/commands/test_gift_box_open_it.py"
    assert f"edit {PACKAGE}/gift_box/commands/gift_box/open_it.py" in steps[2]


# Refusals


def test_if_a_file_exists_all_of_them_are_named_and_nothing_is_replaced(tree: Path) -> None:
    new_command(tree, "shelf/clear")
    before = changed(tree)

    both = new_command(tree, "shelf/clear")
    (tree / PACKAGE / "shop" / "commands" / "shelf" / "clear.py").unlink()
    test_only = new_command(tree, "shelf/clear")

    assert (both.returncode, test_only.returncode) == (1, 1)
    code, test = (
        f"{PACKAGE}/shop/commands/shelf/clear.py",
        "tests/shop/commands/test_shelf_clear.py",
    )
    assert f"These files exist already: {code}, {test}. Nothing was created." in both.stderr
    assert f"These files exist already: {test}. Nothing was created." in test_only.stderr
    assert changed(tree) == [line for line in before if code not in line]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["kit/x"], "A part cannot be called kit: the kit is in this folder."),
        (["tests/x"], "A part cannot be called tests: the tests of the project are"),
        (["docs/x"], "A part cannot be called docs: the pages of the project are"),
        ([f"{PACKAGE}/x"], f"A part cannot be called {PACKAGE}: the package itself has this name"),
        (["json/x"], "A part cannot be called json: Python has a module of this name"),
        (["x", "--part", "json"], "A part cannot be called json"),
        (["x", "--part", "class"], "A part cannot be called class: Python has a keyword of this"),
        (["x", "--part", "../shop"], "'../shop' cannot be the name of a part"),
        (["x", "--part", "Shop"], "'Shop' cannot be the name of a part"),
        (["config/x"], "The group config belongs to the kit. Choose another group."),
        (["lock/list"], "The group lock belongs to the kit. Choose another group."),
        (["doctor/x"], "doctor` is a command. Choose another group."),
        (["sell/x"], "sell` is a command. Choose another group."),
        (["help/x"], "help` shows the help. Choose another group."),
        (["help"], "help` shows the help. Choose another name."),
        (["config"], "config` is a group of commands. Choose another name."),
        (["shelf"], "shelf` is a group of commands. Choose another name."),
        (["doctor"], "kit has the command"),
        (["sell", "--part", "ledger"], "shop has the command"),
        (["sell"], f"These files exist already: {PACKAGE}/shop/commands/sell.py."),
        (["shop/x", "--part", "ledger"], "There is a part called shop. A group of ledger needs"),
        (["shelf/x", "--part", "ledger"], "The part shop has the group shelf. Leave out PART."),
    ],
)
def test_a_name_that_has_another_meaning_is_refused_with_the_reason(
    tree: Path,
    arguments: list[str],
    reason: str,
) -> None:
    ran = new_command(tree, *arguments)

    assert (ran.returncode, changed(tree)) == (1, [])
    assert reason in ran.stderr
    assert len(ran.stderr.splitlines()) == 1


def test_if_there_are_several_parts_or_none_the_user_must_name_one(tree: Path) -> None:
    new_command(tree, "gift-box/open-it")
    several = new_command(tree, "add")
    shutil.rmtree(tree / PACKAGE / "gift_box")
    shutil.rmtree(tree / PACKAGE / "shop")
    none = new_command(tree, "add")

    assert "This project has the parts gift_box, shop. Pass the name" in several.stderr
    assert "This project has no part yet. Pass the name" in none.stderr


@pytest.mark.parametrize(
    "name", ["/x", "x/", "a/b/c", "../x", "A/b", "a_b/c", "1a/b", "a--b/c", "a/b\n", "x" * 31]
)
def test_a_text_that_is_no_name_is_refused_with_the_right_form(tree: Path, name: str) -> None:
    ran = new_command(tree, "--", name)

    assert (ran.returncode, changed(tree)) == (1, [])
    assert "cannot be the name of a command. Use NAME=add for" in ran.stderr


def test_without_a_name_the_user_is_told_to_pass_one(tree: Path) -> None:
    ran = new_command(tree, "--", "")

    assert (ran.returncode, changed(tree)) == (1, [])
    assert ran.stderr.startswith("The name of the command is missing. Use NAME=add for")


def test_if_a_file_cannot_be_created_none_is_left(tree: Path) -> None:
    (tree / "tests").mkdir()
    (tree / "tests" / "shop").write_text("Not a folder.")
    commit_state = changed(tree)

    ran = new_command(tree, "shelf/clear")

    assert ran.returncode == 1
    assert "The files cannot be created (" in ran.stderr
    assert changed(tree) == commit_state


# make


def prepare_make(tree: Path) -> None:
    """Let `make` take the project for one that is installed."""
    for path in ("pyproject.toml", "constraints.txt", ".venv/.ready"):
        (tree / path).parent.mkdir(exist_ok=True)
        (tree / path).touch()
    (tree / ".venv" / "bin").mkdir()
    python = tree / ".venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tree / "Makefile").write_text(f"include {PACKAGE}/kit/kit.mk\n")
    (tree / ".gitignore").write_text("__pycache__/\n.venv/\n")
    commit(tree)


def run_make(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `make new-command`."""
    call = ["make", "new-command", *arguments]
    return subprocess.run(call, cwd=tree, capture_output=True, text=True, check=False)


def test_make_passes_the_name_the_part_and_plain(tree: Path) -> None:
    prepare_make(tree)

    run_make(tree, "NAME=shelf/clear")
    run_make(tree, "NAME=add", "PART=ledger", "PLAIN=1")

    clear = tree / PACKAGE / "shop" / "commands" / "shelf" / "clear.py"
    add = tree / PACKAGE / "ledger" / "commands" / "add.py"
    assert "context.editing" in clear.read_text()
    assert "context.editing" not in add.read_text()


@pytest.mark.parametrize("variable", ["NAME", "PART", "PLAIN"])
def test_no_variable_is_read_by_the_shell_of_make(tree: Path, variable: str) -> None:
    prepare_make(tree)
    variables = {"NAME": "shelf/clear", variable: "a/b'; touch made; '\"; touch made; \""}

    run_make(tree, *[f"{name}={value}" for name, value in variables.items()])

    assert not (tree / "made").exists()
