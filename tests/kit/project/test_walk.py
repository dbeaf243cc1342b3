"""The architecture page names every file that a command enters, and every layer of the kit."""

import re
import textwrap
import tomllib
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool
from tests.kit.project.walk import (
    COMMAND,
    PAGE,
    Visit,
    corrections,
    trace,
    visits_on_page,
    with_present_names,
)

_MAP_ROW = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", re.MULTILINE)


@pytest.fixture
def page() -> str:
    """Return the text of the architecture page."""
    return (ROOT / PAGE).read_text()


def test_the_walk_is_the_whole_path_of_a_command(
    page: str,
    tool: Tool,
    workspace: Path,
    tmp_path: Path,
) -> None:
    settings = workspace / "tool.toml"
    settings.write_text("")

    traced = trace(COMMAND, workspace, tool.environ, tmp_path / "trace")

    assert corrections(visits_on_page(page), traced) == []
    assert settings.read_text() == "[settings]\na = 1\n"


def test_the_code_on_the_page_is_the_code_of_the_command(page: str) -> None:
    source = (ROOT / PACKAGE / "kit" / "commands" / "config" / "set.py").read_text()

    (quoted,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)

    assert textwrap.indent(quoted, "    ") in source, f"{PAGE}: quote the end of set.py again"


_TRACED = [
    Visit(file="a.py", function="first", caller=""),
    Visit(file="b.py", function="Second.__init__", caller="a.first"),
    Visit(file="c.py", function="third", caller="b.Second.run"),
]


@pytest.mark.parametrize(
    ("shown", "correction"),
    [
        ([_TRACED[0], _TRACED[2]], "Add this row after the row of a.py"),
        ([*_TRACED, replace(_TRACED[0], file="d.py")], "Remove the row of d.py"),
        ([*_TRACED[:2], replace(_TRACED[2], function="gone")], "Let the row of c.py begin with"),
        ([*_TRACED[:2], replace(_TRACED[2], caller="gone")], "Let the row of c.py begin with"),
        ([_TRACED[1], _TRACED[0], _TRACED[2]], "Put the rows into this order: a.py, b.py"),
        ([*_TRACED, _TRACED[0]], "Put the rows into this order: a.py, b.py"),
    ],
)
def test_a_difference_is_reported_with_the_change_to_make(
    shown: list[Visit],
    correction: str,
) -> None:
    (found,) = corrections(shown, _TRACED)

    assert correction in found


def test_a_row_of_the_page_is_read_as_it_was_printed() -> None:
    rows = [f"{visit.row()} It does something. |\n" for visit in _TRACED]

    assert visits_on_page("".join(rows)) == _TRACED


def test_renamed_functions_are_corrected_and_the_text_stays() -> None:
    old = replace(_TRACED[1], function="Renamed.run", caller="a.renamed")
    row = f"{old.row()} It does something. |\n"

    corrected = with_present_names(f"Before.\n\n{row}\nAfter.\n", _TRACED)

    assert corrected == f"Before.\n\n{_TRACED[1].row()} It does something. |\n\nAfter.\n"


def test_the_map_shows_the_layers_in_their_order(page: str) -> None:
    contract = _contract("Inside the kit nobody looks up")

    layers = [layer.split(" | ") for layer in contract["layers"]]
    shown = _map_rows(page, "In the kit", "A few modules of the kit don't belong to any layer")
    assert shown == layers, f"{PAGE}: the map of the kit must have the layers of pyproject.toml"


def test_each_module_of_the_kit_is_on_the_map(page: str) -> None:
    modules = set()
    for path in (ROOT / PACKAGE / "kit").iterdir():
        if path.suffix == ".py" or (path / "__init__.py").exists():
            modules.add(path.stem)
    modules.remove("__init__")

    rows = _map_rows(page, "In the kit", "This picture shows the layers")

    on_map = set(chain.from_iterable(rows))
    assert modules - on_map == set(), f"{PAGE}: add these modules to the map of the kit"
    assert on_map - modules == set(), f"{PAGE}: remove these modules from the map of the kit"


def test_the_map_shows_the_only_file_that_imports_each_library(page: str) -> None:
    allowed = _contract("One driver, one file")["ignore_imports"]

    shown = []
    for library, module in re.findall(r"^\| (\w+) \| `([\w/]+)\.py` \|$", page, re.MULTILINE):
        shown.append(f"{module.replace('/', '.')} -> {library}")

    of_kit = [rule for rule in allowed if rule.startswith(f"{PACKAGE}.kit.")]
    assert shown == of_kit


def _contract(name: str) -> dict[str, Any]:
    """Return a contract of import-linter by its name."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    # The table is called like the command here. A fork renames the command, but not this table.
    (tables,) = [table for table in document.values() if "importlinter" in table]
    contracts: list[dict[str, Any]] = tables["importlinter"]["contracts"]
    (found,) = [contract for contract in contracts if contract["name"] == name]
    return found


def _map_rows(page: str, first: str, last: str) -> list[list[str]]:
    """Return the modules in each row between two texts."""
    between = page.partition(first)[2].partition(last)[0]
    return [re.findall(r"\w+", cell) for cell in _MAP_ROW.findall(between)]
