"""sampletool/state/opening.py: a driver that is missing is named."""

import sys

import pytest

from sampletool.kit.contract.errors import ExtraNotInstalled
from sampletool.state.opening import open_store
from tests.state.support.store_client import make_terms


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "sampletool.state.redis", raising=False)

    with pytest.raises(ExtraNotInstalled) as missing:
        open_store("redis://127.0.0.1:1/0", None, make_terms())

    assert missing.value.message == "A Redis or Valkey store needs the extra 'redis', which is not installed."
