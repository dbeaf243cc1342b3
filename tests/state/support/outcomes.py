"""The outcome of a verb, so that a test fails by its assertion, whatever happens."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar

import pytest

from sampletool.kit.contract.expected import EXPECTED, to_tool_error
from sampletool.state.store import Store

E = TypeVar("E", bound=BaseException)


@contextmanager
def raises(
    error_class: type[E] | tuple[type[E], ...],
    match: str | None = None,
) -> Iterator[pytest.ExceptionInfo[E]]:
    """Check that the block raises this error, and no other one.

    `pytest.raises` only passes another error on, so that no assertion fails.
    """
    try:
        with pytest.raises(error_class, match=match) as raised:
            yield raised
    except AssertionError:
        raise
    except Exception as other:
        raise AssertionError(f"it raised {other!r} instead") from other


def check_errors(verb: Callable[..., Any]) -> Callable[..., Any]:
    """Return a verb of a store that checks a promise of protocol.py.

    If it fails, it raises an error of this program, and never one of a driver.
    """

    @wraps(verb)
    def checked(*args: Any, **options: Any) -> Any:
        try:
            return verb(*args, **options)
        except (*EXPECTED, AssertionError):
            raise
        except Exception as error:
            problem = f"{verb.__name__} raised {error!r}, which is no error of this program"
            raise AssertionError(problem) from error

    return checked


def outcome(ask: Callable[[], Any]) -> Any:
    """Return the result, the code of our error, or any other exception."""
    try:
        return ask()
    except EXPECTED as error:
        return to_tool_error(error).code
    except Exception as error:
        return error


def statuses(store: Store, queue: str | None = None) -> dict[str, int]:
    """Return how many tasks have each status."""
    return Counter(task.status for task in store.task_list(queue, None, 0, 100_000))
