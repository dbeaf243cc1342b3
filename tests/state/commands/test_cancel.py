"""tool task cancel: a failure after the first tasks tells what happened to these."""

from typing import cast

import pytest

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.response import Effect
from sampletool.kit.safety.errors import Interrupted
from sampletool.kit.testing.tool import Tool
from sampletool.state.commands.task.cancel import Cancelled, CancelledTask, _cancel_all
from sampletool.state.errors import StoreUnavailable
from sampletool.state.store import Store


class StoreThatIsLost:
    """A store that fails at the task `b`."""

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def task_cancel(self, task: str) -> Effect:
        if task == "b":
            raise self._failure
        return "updated"


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize("wrong_id", ["", "x" * 201])
def test_nothing_is_cancelled_if_one_of_the_ids_cannot_be_one(tool: Tool, wrong_id: str) -> None:
    tool("task", "add", "mail", "x", "--id", "a")

    refused = tool("task", "cancel", "a", wrong_id)

    assert refused.code == "VALIDATION_ERROR"
    assert tool("task", "show", "a").data["task"]["status"] == "free"


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (StoreUnavailable(store="redis://x", reason="no connection"), "STORE_UNAVAILABLE"),
        (Interrupted(2), "INTERRUPTED"),
    ],
)
def test_a_failure_of_the_store_shows_what_was_cancelled_before(
    failure: Exception, code: str
) -> None:
    store = cast(Store, StoreThatIsLost(failure))

    with pytest.raises(ToolError) as caught:
        _cancel_all(store, ["a", "b", "c"])

    cancelled = Cancelled([CancelledTask("a", ok=True, effect="updated")], "updated")
    assert caught.value.code == code
    assert caught.value.data == cancelled
    assert caught.value.suggestion.startswith("The tasks before 'b' were handled.")


def test_a_failure_at_the_first_task_is_reported_as_it_is() -> None:
    store = cast(
        Store, StoreThatIsLost(StoreUnavailable(store="redis://x", reason="no connection"))
    )

    with pytest.raises(StoreUnavailable) as caught:
        _cancel_all(store, ["b", "c"])

    assert caught.value.data is None
