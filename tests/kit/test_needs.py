"""The project that the kit lies in has what the kit needs: pyproject.toml, the Makefile, and the kit's own bytes."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit import checksums
from sampletool.kit.program import PACKAGE
from tests.kit.trees import ROOT, write_checksums

_KIT = Path(checksums.__file__).parent


def has(actual: Any, needed: Any) -> bool:
    """Tables may have more keys, lists more entries."""
    if isinstance(needed, dict):
        return isinstance(actual, dict) and all(
            key in actual and has(actual[key], needed[key]) for key in needed
        )
    if isinstance(needed, list):
        return isinstance(actual, list) and all(
            any(has(entry, each) for entry in actual) for each in needed
        )
    return bool(actual == needed)


def leaves(table: dict[str, Any], above: str = "") -> list[tuple[str, Any]]:
    """Each setting by its key with dots, and each table that is an entry of a list."""
    found = []
    for key, value in table.items():
        found += (
            leaves(value, f"{above}{key}.")
            if isinstance(value, dict)
            else [(f"{above}{key}", value)]
        )
    return found


_NEEDS = leaves(tomllib.loads((_KIT / "NEEDS.toml").read_text().replace("PACKAGE", PACKAGE)))


@pytest.mark.parametrize(("key", "needed"), _NEEDS, ids=[key for key, _ in _NEEDS])
def test_pyproject_has_what_the_kit_needs(key: str, needed: Any) -> None:
    actual: Any = tomllib.loads((ROOT / "pyproject.toml").read_text())
    for name in key.split("."):
        actual = actual[name]

    assert has(actual, needed), f"{key} needs {needed}"


def test_the_makefile_includes_that_of_the_kit() -> None:
    assert f"include {PACKAGE}/kit/kit.mk\n" in (ROOT / "Makefile").read_text()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A project with the kit, its tests and its pages, as a fork has taken them."""
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in (f"{PACKAGE}/kit", "tests/kit", "docs/kit"):
        shutil.copytree(ROOT / folder, tmp_path / "copy" / folder, ignore=ignored)
    (tmp_path / "copy" / PACKAGE / "__init__.py").touch()
    write_checksums(tmp_path / "copy")
    return tmp_path / "copy"


def compare(copy: Path) -> subprocess.CompletedProcess[str]:
    # A fresh interpreter: a forked one has loaded our kit, not that of the tree.
    command = [sys.executable, "-m", f"{PACKAGE}.kit.checksums"]
    return subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)


def test_a_kit_as_it_was_taken_passes(copy: Path) -> None:
    (copy / PACKAGE / "own.py").touch()
    (copy / "tests" / "kit" / "__pycache__").mkdir()
    (copy / "tests" / "kit" / "__pycache__" / "test_app.cpython-311.pyc").touch()

    assert compare(copy).returncode == 0


@pytest.mark.parametrize(
    "name", ["kit/app.py", "kit/kit.mk", "tests/kit/test_app.py", "docs/kit/settings.md"]
)
@pytest.mark.parametrize("change", ["edited", "deleted"])
def test_an_edited_kit_is_named(copy: Path, name: str, change: str) -> None:
    path = copy / PACKAGE / name if name.startswith("kit/") else copy / name
    if change == "edited":
        path.write_text(path.read_text() + "\n")
    else:
        path.unlink()

    compared = compare(copy)

    assert compared.returncode == 1
    assert f": {name}. " in compared.stderr


def test_a_file_that_was_added_to_the_kit_is_named(copy: Path) -> None:
    (copy / PACKAGE / "kit" / "commands" / "mine.py").touch()

    assert ": kit/commands/mine.py. " in compare(copy).stderr


def test_where_the_kit_is_developed_there_is_nothing_to_compare(copy: Path) -> None:
    (copy / PACKAGE / "kit" / "CHECKSUMS").unlink()
    (copy / PACKAGE / "kit" / "app.py").write_text("new\n")

    assert compare(copy).returncode == 0
