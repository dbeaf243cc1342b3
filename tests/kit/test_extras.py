"""sampletool/kit/extras.py: what is missing is said in the words of how the tool was installed."""

import sys
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import ExtraNotInstalled
from sampletool.kit.extras import needing


@pytest.mark.parametrize(
    ("receipt", "words"),
    [
        ("uv-receipt.toml", "uv tool install 'sampletool[much]'"),
        ("pipx_metadata.json", "pipx install --force 'sampletool[much]'"),
        ("pyvenv.cfg", "pip install 'sampletool[much]'"),
    ],
)
def test_a_missing_extra_is_named_in_the_words_of_how_the_tool_was_installed(
    receipt: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / receipt).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))

    with pytest.raises(ExtraNotInstalled) as missing, needing("much", "More"):
        raise ModuleNotFoundError(name="driver")

    assert missing.value.describe()["suggestion"] == f"Install it: `{words}`."
    assert missing.value.message == 'More needs the extra "much", which is not installed.'


def test_a_module_of_ours_that_is_missing_is_a_fault_of_ours() -> None:
    with pytest.raises(ModuleNotFoundError), needing("much", "More"):
        raise ModuleNotFoundError(name="sampletool.gone")
