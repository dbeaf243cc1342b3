"""sampletool/state/connect.py: a driver that is missing is named; how long a server may take."""

import sys
from typing import Any

import pytest

from sampletool.kit.command_line import CommandLine, GlobalOptions
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import ExtraNotInstalled
from sampletool.kit.safety.signals import Signals
from sampletool.state.connect import connect_for_command, open_store
from tests.state.support.outcomes import raises
from tests.state.support.store_client import make_policy


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis", None)
    monkeypatch.delitem(sys.modules, "sampletool.state.redis", raising=False)

    with raises(ExtraNotInstalled) as missing:
        open_store("redis://127.0.0.1:1/0", None, make_policy())

    assert (
        missing.value.message
        == 'A Redis or Valkey store needs the extra "redis", which is not installed.'
    )


@pytest.mark.parametrize(("lock_timeout", "seconds"), [("0", 2.0), ("10s", 10.0)])
def test_a_server_has_two_seconds_to_answer_also_if_nobody_waits_for_locks(
    lock_timeout: str, seconds: float
) -> None:
    context = Context(Signals())
    context.set_command_line(CommandLine(options=GlobalOptions(lock_timeout=lock_timeout)))

    with context.exit_stack:
        store: Any = connect_for_command(context, "redis://127.0.0.1:1/0")
        limits = store._client.connection_pool.connection_kwargs

    assert limits["socket_connect_timeout"] == seconds
