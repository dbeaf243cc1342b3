"""The outcome of a verb as one value, so that a test fails by its assertion, whatever happens."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from sampletool.kit.contract.expected import EXPECTED, to_tool_error
from sampletool.state.store import Store


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
