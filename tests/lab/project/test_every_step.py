"""In a fixed variant, every call is a step: also one that is added to production code tomorrow."""

import ast
import shutil
from pathlib import Path

import pytest

from sampletool.kit.testing.scale import SOAK
from sampletool.kit.testing.tool import Tool
from sampletool.lab.scenario import FIXED, PACKAGE, find_scenario, scenario_names

_ADDED = '__import__("os").path.exists("added-call")'

_DRIVEN = []
for _name in scenario_names():
    _scenario = find_scenario(_name)
    has_processes = _scenario.create_shared_memory is None and not _scenario.threads
    if has_processes and _scenario.checks_every_call:
        _DRIVEN.append(_name)
# Its function runs only after a signal.
_DRIVEN.remove("leaked-lock")


def add_call(file: Path, function: str) -> None:
    """Add a call to the beginning of a function, such as `Lock.exclusively`."""
    source = file.read_text()
    body: list[ast.stmt] = ast.parse(source).body
    for name in function.split("."):
        (node,) = [each for each in body if getattr(each, "name", None) == name]
        assert isinstance(node, ast.ClassDef | ast.FunctionDef)
        body = node.body
        has_docstring = ast.get_docstring(node) is not None
    # A docstring is the first statement.
    statement = body[1] if has_docstring else body[0]
    lines = source.splitlines(keepends=True)
    lines.insert(statement.lineno - 1, " " * statement.col_offset + _ADDED + "\n")
    file.write_text("".join(lines))


@pytest.mark.parametrize("name", _DRIVEN if SOAK else ["interleaved-log", "planted-link"])
def test_a_call_that_is_added_to_production_code_is_a_step(
    name: str, tool: Tool, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(PACKAGE, copy / "sampletool", ignore=shutil.ignore_patterns("*.pyc.*"))
    module, _, function = find_scenario(name).production_code.partition(":")
    add_call(copy / f"{module.replace('.', '/')}.py", function)

    arguments = ("lab", "run", name, "--variant", FIXED, "--every-step", "--schedule", "A1")
    (run,) = tool(*arguments, PYTHONPATH=str(copy)).response["data"]["runs"]

    assert "look at added-call" in [event["step"] for event in run["events"]]
