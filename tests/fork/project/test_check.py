"""A fresh project passes its own check."""

import pytest

from sampletool.kit.testing.tool import Tool
from tests.fork.commands.test_fork import in_project, made
from tests.kit.trees import make_environment, take_types


def test_a_fresh_project_passes_its_check_and_stays_as_it_is(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = made(tool, "--ci", "github")
    monkeypatch.delenv("PYTHONPATH")
    make_environment(tree)
    take_types(tree)
    same = "--ignore tests/kit/project/test_how_to.py"  # a page of the kit, of which our own check does what it says
    monkeypatch.setenv("PYTEST_ADDOPTS", f"-q -n0 -p no:cacheprovider {same}")

    in_project(tree, "make", "check")

    assert in_project(tree, "git", "status", "--porcelain") == ""
