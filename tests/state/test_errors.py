"""What the store's errors say."""

from sampletool.state.errors import LeaseLost, OutcomeUnknown, StoreUnavailable


def test_a_generation_that_never_was_is_not_said_to_be_over() -> None:
    assert LeaseLost("a", 2, 1, "claimed").message == (
        "Generation 2 of the task 'a' has never been: it is at generation 1 (claimed)."
    )
    assert "is over: it is at generation 3" in LeaseLost("a", 2, 3, "claimed").message
    assert "is over: it is done now" in LeaseLost("a", 2, 2, "done").message


def test_a_write_that_may_have_happened_is_not_to_be_retried() -> None:
    cut = OutcomeUnknown(store="redis://h", reason="no connection").describe()
    away = StoreUnavailable(store="redis://h", reason="no connection").describe()

    assert (cut["code"], cut["retryable"], cut["context"]["outcome"]) == (away["code"], False, "unknown")
    assert (away["retryable"], away["retry_after_ms"]) == (True, 1000)
