"""sampletool/state/opening.py: what is missing is said in the words of how the tool was installed."""

import sys
from pathlib import Path

import pytest

from sampletool.state.errors import ExtraNotInstalled
from sampletool.state.opening import open_store
from tests.state.support.store_client import make_terms


@pytest.mark.parametrize(
    ("receipt", "words"),
    [
        ("uv-receipt.toml", "uv tool install 'sampletool[redis]'"),
        ("pipx_metadata.json", "pipx install --force 'sampletool[redis]'"),
        ("pyvenv.cfg", "pip install 'sampletool[redis]'"),
    ],
)
def test_a_missing_extra_is_named_in_the_words_of_how_the_tool_was_installed(
    receipt: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / receipt).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "sampletool.state.redis", raising=False)

    with pytest.raises(ExtraNotInstalled) as missing:
        open_store("redis://127.0.0.1:1/0", None, make_terms())

    assert missing.value.describe()["suggestion"] == f"Install it: {words}."
    assert missing.value.message == "A Redis or Valkey store needs the extra 'redis', which is not installed."
