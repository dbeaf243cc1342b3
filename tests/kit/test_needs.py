"""The project around the kit has what the kit needs, and the kit has the bytes that were tested.

The needs are settings in pyproject.toml and a line in the Makefile.
"""

import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit import checksums
from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.trees import write_checksums

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


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a project with the kit, its tests and its pages, as a fork has them."""
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in (f"{PACKAGE}/kit", "tests/kit", "docs/kit"):
        shutil.copytree(ROOT / folder, tmp_path / "copy" / folder, ignore=ignored)
    (tmp_path / "copy" / PACKAGE / "__init__.py").touch()
    write_checksums(tmp_path / "copy")
    return tmp_path / "copy"


def compare(copy: Path) -> subprocess.CompletedProcess[str]:
    """Compare the files of the kit with its CHECKSUMS."""
    # A fresh interpreter: a forked one has loaded our kit, not that of the copy.
    command = [sys.executable, "-m", f"{PACKAGE}.kit.checksums"]
    return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)


def test_an_unchanged_kit_passes(copy: Path) -> None:
    (copy / PACKAGE / "own.py").touch()
    (copy / "tests" / "kit" / "__pycache__").mkdir()
    (copy / "tests" / "kit" / "__pycache__" / "test_app.cpython-311.pyc").touch()

    assert compare(copy).returncode == 0


@pytest.mark.parametrize(
    "name", ["kit/app.py", "kit/kit.mk", "tests/kit/test_app.py", "docs/kit/settings.md"]
)
@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_an_edited_kit_is_named(copy: Path, name: str, change: str) -> None:
    path = copy / name
    if name.startswith("kit/"):
        path = copy / PACKAGE / name
    if change == "edited":
        path.write_text(path.read_text() + "\n")
    else:
        path.unlink()

    compared = compare(copy)

    assert compared.returncode == 1
    assert f": {name}. " in compared.stderr


def test_a_file_that_was_added_to_the_kit_is_named(copy: Path) -> None:
    (copy / PACKAGE / "kit" / "commands" / "mine.py").touch()

    compared = compare(copy)

    assert ": kit/commands/mine.py. " in compared.stderr


def test_without_checksums_as_where_the_kit_is_developed_nothing_is_compared(copy: Path) -> None:
    (copy / PACKAGE / "kit" / "CHECKSUMS").unlink()
    (copy / PACKAGE / "kit" / "app.py").write_text("new\n")

    assert compare(copy).returncode == 0
