"""What the store's errors say."""

import pytest

from sampletool.state.errors import LeaseLost, OutcomeUnknown, StoreUnavailable
from sampletool.state.protocol import Repetition


@pytest.mark.parametrize(("actual", "status"), [(1, "claimed"), (2, "done"), (3, "free")])
def test_a_generation_that_is_over_or_has_never_been_does_not_hold_the_task(
    actual: int, status: str
) -> None:
    assert LeaseLost("a", 2, actual, status).message == (
        f'Claim a:2 is not current. Task "a" is at generation {actual}, and its status is {status}.'
    )


@pytest.mark.parametrize(
    ("repetition", "is_retryable", "hint"),
    [
        ("unsafe", False, "Check the current value"),
        ("harmless", True, "safe to repeat"),
        ("same key", True, "with the same --idempotency-key"),
        ("same fence", True, "with the same --fence"),
    ],
)
def test_a_change_that_may_have_happened_is_retryable_only_if_a_repetition_is_safe(
    repetition: Repetition, is_retryable: bool, hint: str
) -> None:
    error = OutcomeUnknown(
        store="redis://h", reason="no connection", repetition=repetition
    ).describe()

    assert (error["code"], error["context"]["outcome"]) == ("STORE_UNAVAILABLE", "unknown")
    assert error["retryable"] is is_retryable
    assert hint in error["suggestion"]


def test_a_store_that_was_never_reached_has_changed_nothing() -> None:
    error = StoreUnavailable(store="redis://h", reason="no connection").describe()

    assert (error["retryable"], error["retry_after_ms"]) == (True, 1000)
    assert "outcome" not in error["context"]
    assert "Nothing was changed" in error["message"]
