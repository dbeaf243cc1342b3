"""How an action failed, for a test that says by an assertion that it must not, or in which way it must."""

from collections.abc import Callable
from contextlib import AbstractContextManager


def failure_of(action: Callable[[], object]) -> Exception | None:
    try:
        action()
    except Exception as error:
        return error
    return None


def outcome_of(action: Callable[[], object]) -> object:
    """Return what the action returned, or the exception that it raised."""
    try:
        return action()
    except Exception as error:
        return error


def failure_in(block: AbstractContextManager[object]) -> Exception | None:
    """Of entering and leaving a `with` block."""

    def enter_and_leave() -> None:
        with block:
            pass

    return failure_of(enter_and_leave)
