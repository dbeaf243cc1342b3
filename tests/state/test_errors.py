"""What the store's errors say."""

import pytest

from sampletool.state.errors import LeaseLost, OutcomeUnknown, StoreUnavailable


@pytest.mark.parametrize(("actual", "status"), [(1, "claimed"), (2, "done"), (3, "free")])
def test_a_generation_that_is_over_or_has_never_been_does_not_hold_the_task(actual: int, status: str) -> None:
    assert LeaseLost("a", 2, actual, status).message == (
        f"Generation 2 does not hold the task 'a': it is at {actual} ({status})."
    )


def test_a_write_that_may_have_happened_is_not_to_be_retried() -> None:
    cut = OutcomeUnknown(store="redis://h", reason="no connection").describe()
    away = StoreUnavailable(store="redis://h", reason="no connection").describe()

    assert (cut["code"], cut["retryable"], cut["context"]["outcome"]) == (away["code"], False, "unknown")
    assert (away["retryable"], away["retry_after_ms"]) == (True, 1000)
