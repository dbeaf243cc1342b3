"""sampletool/kit/extras.py: the error for a missing extra says how to install it."""

import sys
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import ExtraNotInstalled
from sampletool.kit.extras import needing


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of the environment that the tool seems to be installed in."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    return tmp_path


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

    with pytest.raises(ExtraNotInstalled) as caught, needing("much", "More"):
        raise ModuleNotFoundError(name="driver")

    assert caught.value.suggestion == f"To install it, run `{command}`."
    assert caught.value.message == 'More needs the extra "much", which is not installed.'


def test_another_hint_can_replace_the_usual_one() -> None:
    with pytest.raises(ExtraNotInstalled) as caught, needing("much", "More", "Use less."):
        raise ModuleNotFoundError(name="driver")

    assert caught.value.suggestion == "Use less."


def test_a_missing_module_without_a_name_counts_as_a_missing_extra() -> None:
    with pytest.raises(ExtraNotInstalled), needing("much", "More"):
        raise ModuleNotFoundError


def test_a_missing_module_of_our_own_is_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError), needing("much", "More"):
        raise ModuleNotFoundError(name="sampletool.gone")


def test_another_error_is_not_changed() -> None:
    with pytest.raises(ImportError) as caught, needing("much", "More"):
        raise ImportError("cannot import name 'x'")

    assert type(caught.value) is ImportError
