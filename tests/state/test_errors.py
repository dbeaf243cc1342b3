"""Errors of the store say what the caller has to know."""

from sampletool.state.errors import LeaseLost


def test_a_generation_that_never_was_is_not_said_to_be_over() -> None:
    assert LeaseLost("a", 2, 1, "claimed").message == (
        "Generation 2 of the task 'a' has never been: it is at generation 1 (claimed)."
    )
    assert "is over: it is at generation 3" in LeaseLost("a", 2, 3, "claimed").message
