"""The project around the kit has what the kit needs: settings in pyproject.toml, and a Makefile.

A project that depends on the kit's package chooses its tools itself.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...program import KIT_DIRECTORY, PACKAGE
from ...project import ROOT
from ..how_to import fail_if_any
from .own_code import IS_KIT_IN_PACKAGE

_HEADING = "The project"


def test_pyproject_has_what_the_kit_needs() -> None:
    if not IS_KIT_IN_PACKAGE:
        return
    needs = Path(KIT_DIRECTORY, "NEEDS.toml").read_text().replace("PACKAGE", PACKAGE)
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())

    faults = []
    for key, needed in _leaves(tomllib.loads(needs)):
        if not _has(_value_of(pyproject, key), needed):
            faults.append(f"pyproject.toml: `{key}` lacks {needed!r}.")

    fail_if_any(faults, "Add it", _HEADING)


def test_the_makefile_includes_the_one_of_the_kit() -> None:
    if not IS_KIT_IN_PACKAGE:
        return
    line = f"include {PACKAGE}/kit/kit.mk"
    faults = []
    if f"{line}\n" not in (ROOT / "Makefile").read_text():
        faults.append("Makefile: the targets of the kit are missing.")

    fail_if_any(faults, f"Add the line `{line}`", _HEADING)


def _leaves(table: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting with its key, such as `tool.mypy.strict`. A list is one setting."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


def _value_of(table: Any, key: str) -> Any:
    """Return the value of a key such as `tool.mypy.strict`, or None if there is none."""
    for name in key.split("."):
        if not isinstance(table, dict):
            return None
        table = table.get(name)
    return table


def _has(actual: Any, needed: Any) -> bool:
    """Return whether a setting has what the kit needs.

    A table may have more keys, and a list more entries.
    """
    if isinstance(needed, dict):
        return isinstance(actual, dict) and _has_members(actual, needed)
    if isinstance(needed, list):
        return isinstance(actual, list) and all(_has_entry(actual, entry) for entry in needed)
    return bool(actual == needed)


def _has_members(actual: dict[str, Any], needed: dict[str, Any]) -> bool:
    return all(key in actual and _has(actual[key], needed[key]) for key in needed)


def _has_entry(actual: list[Any], needed: Any) -> bool:
    return any(_has(entry, needed) for entry in actual)
