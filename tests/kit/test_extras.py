"""sampletool/kit/extras.py: the error for a missing extra says how to install it."""

import sys
from pathlib import Path
from typing import NoReturn

import pytest

from sampletool.kit.contract.errors import ExtraNotInstalled
from sampletool.kit.extras import needing


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of the environment that the tool seems to be installed in."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


def _raise(error: Exception) -> NoReturn:
    raise error


def _error_for(missing: Exception, hint: str = "") -> Exception:
    """Return the error that the caller gets if an import raises this one."""
    try:
        with needing("much", "More", hint):
            _raise(missing)
    except Exception as error:
        return error
    raise AssertionError("no error was raised")


@pytest.mark.parametrize(
    ("receipt", "command"),
    [
        ("uv-receipt.toml", "uv tool install 'sampletool[much]'"),
        ("pipx_metadata.json", "pipx install --force 'sampletool[much]'"),
        ("pyvenv.cfg", "pip install 'sampletool[much]'"),
    ],
)
def test_the_hint_is_a_command_of_the_installer_that_installed_the_tool(
    environment: Path,
    receipt: str,
    command: str,
) -> None:
    (environment / receipt).touch()

    error = _error_for(ModuleNotFoundError(name="driver"))

    assert isinstance(error, ExtraNotInstalled)
    assert error.suggestion == f"To install it, run `{command}`."
    assert error.message == 'More needs the extra "much", which is not installed.'
    assert error.context["installer"] == command.removesuffix(" 'sampletool[much]'")


def test_another_hint_can_replace_the_usual_one() -> None:
    error = _error_for(ModuleNotFoundError(name="driver"), "Use less.")

    assert isinstance(error, ExtraNotInstalled)
    assert error.suggestion == "Use less."


def test_a_missing_module_without_a_name_counts_as_a_missing_extra() -> None:
    assert isinstance(_error_for(ModuleNotFoundError()), ExtraNotInstalled)


def test_a_missing_module_of_our_own_is_a_bug() -> None:
    missing = ModuleNotFoundError(name="sampletool.gone")

    assert _error_for(missing) is missing


def test_another_error_is_not_changed() -> None:
    other = ImportError("cannot import name 'x'")

    assert _error_for(other) is other


def test_where_nothing_is_missing_the_block_runs() -> None:
    imported = []

    with needing("much", "More"):
        imported.append("driver")

    assert imported == ["driver"]
