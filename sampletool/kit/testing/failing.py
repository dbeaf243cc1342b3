"""How an action failed, as a value that a test can compare.

A test uses these functions where a failure is one of several possible results. If an action must
fail, `pytest.raises` says so better.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager


def failure_of(action: Callable[[], object]) -> Exception | None:
    """Return the exception that the action raises, or None."""
    try:
        action()
    except Exception as error:
        return error
    return None


def outcome_of(action: Callable[[], object]) -> object:
    """Return what the action returns, or the exception that it raises."""
    try:
        return action()
    except Exception as error:
        return error


def failure_in(block: AbstractContextManager[object]) -> Exception | None:
    """Return the exception that entering or leaving a `with` block raises, or None."""

    def enter_and_leave() -> None:
        with block:
            pass

    return failure_of(enter_and_leave)
