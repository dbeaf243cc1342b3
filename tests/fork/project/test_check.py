"""A fresh project passes its own check and its own tests, and is small."""

import sys
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import FEW_PLUGINS, copy_mypy_cache, make_environment, tracked_files
from tests.fork.commands.test_fork import in_project, made
from tests.project.style import Counts, count


def test_a_fresh_project_passes_its_check_and_stays_as_it_is(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = made(tool, "--ci", "github")
    monkeypatch.delenv("PYTHONPATH")
    make_environment(tree)
    copy_mypy_cache(tree)
    same = "--ignore tests/kit/project/test_how_to.py"  # a page of the kit, of which our own check does what it says
    monkeypatch.setenv("PYTEST_ADDOPTS", f"-q -n0 -p no:cacheprovider {same}")

    in_project(tree, "make", "check")

    assert in_project(tree, "git", "status", "--porcelain") == ""


def test_its_tests_pass(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = made(tool)
    monkeypatch.delenv("PYTHONPATH")

    pytest_there = [str(make_environment(tree)), "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *FEW_PLUGINS]
    in_project(tree, *pytest_there, "tests/inventory")
    assert in_project(tree, "git", "status", "--porcelain") == ""


def test_with_long_names_its_lines_are_not_too_long(tool: Tool) -> None:
    longest = "a" * 40
    tree = made(tool, "--author", "A" * 100, "--description", "d" * 100, name=longest)

    in_project(tree, str(Path(sys.prefix, "bin", "ruff")), "check", "--no-cache", "--select", "E501", ".")


def test_what_it_owns_besides_the_kit_is_small(tool: Tool) -> None:
    tree = made(tool)
    own = [tree / path for path in tracked_files(tree) if path.endswith(".py") and "kit" not in Path(path).parts]

    code, tests, example = Counts(), Counts(), Counts()
    for path in own:
        count(path, tests if tree / "tests" in path.parents else code)
        if "inventory" in path.parts:
            count(path, example)

    assert code.code_lines <= 250
    assert tests.code_lines <= 150
    assert example.code_lines <= 220
