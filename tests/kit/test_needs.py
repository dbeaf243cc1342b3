"""The project has what the kit needs: settings in pyproject.toml, and a line in the Makefile."""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit import checksums
from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT

_KIT = Path(checksums.__file__).parent


def has(actual: Any, needed: Any) -> bool:
    """Return whether a setting has what the kit needs.

    A table may have more keys, and a list more entries.
    """
    if isinstance(needed, dict):
        return isinstance(actual, dict) and _has_members(actual, needed)
    if isinstance(needed, list):
        return isinstance(actual, list) and all(_has_entry(actual, entry) for entry in needed)
    return bool(actual == needed)


def _has_members(actual: dict[str, Any], needed: dict[str, Any]) -> bool:
    return all(key in actual and has(actual[key], needed[key]) for key in needed)


def _has_entry(actual: list[Any], needed: Any) -> bool:
    return any(has(entry, needed) for entry in actual)


def leaves(table: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each setting with its key, such as `tool.mypy.strict`. A list is one setting."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{above}{key}.")
        else:
            yield f"{above}{key}", value


_NEEDS_FILE = (_KIT / "NEEDS.toml").read_text().replace("PACKAGE", PACKAGE)
_NEEDS = list(leaves(tomllib.loads(_NEEDS_FILE)))


@pytest.mark.parametrize(("key", "needed"), _NEEDS, ids=[key for key, _ in _NEEDS])
def test_pyproject_has_what_the_kit_needs(key: str, needed: Any) -> None:
    actual: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name in key.split("."):
        actual = actual[name]

    assert has(actual, needed), f"{key} needs {needed}"


def test_the_makefile_includes_the_one_of_the_kit() -> None:
    assert f"include {PACKAGE}/kit/kit.mk\n" in (ROOT / "Makefile").read_text()
