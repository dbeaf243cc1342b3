"""What a command declares, and what follows from it."""

import pytest

from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import ExitStatus, KeyNotFound
from sampletool.kit.testing.tool import Tool, declared_specs


def test_a_command_that_takes_a_lock_can_end_as_locks_do() -> None:
    free, locking = CommandSpec(effect="nothing"), CommandSpec(effect="files", locks=("build",))

    assert ExitStatus.LOCK_HELD not in free.exit_statuses()
    assert ExitStatus.LOCK_HELD in locking.exit_statuses()
    assert {error.code for error in locking.own_errors()} == {"LOCK_HELD", "NESTED_CALL", "LOCKS_UNSUPPORTED"}


def test_a_status_follows_from_its_error() -> None:
    assert {4, 5} & set(CommandSpec(effect="nothing", errors=(KeyNotFound,)).exit_statuses()) == {5}


def test_an_error_that_is_not_declared_fails_the_test_that_meets_it(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(declared_specs(), "config.get", CommandSpec(effect="nothing"))

    with pytest.raises(AssertionError, match=r"does not declare .*KEY_NOT_FOUND"):
        tool("config", "get", "nope")
