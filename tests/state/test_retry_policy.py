"""sampletool/state/retry_policy.py: how long a verb may take."""

from contextlib import nullcontext
from math import inf

import pytest

from sampletool.kit.safety.signals import Signals
from sampletool.state.retry_policy import RetryPolicy


def make_policy(
    requested_seconds: float | None,
    max_seconds: float,
    deadline_seconds: float | None,
) -> RetryPolicy:
    """Return a policy of a process whose clock stands still."""
    signals = Signals(lambda: 1000.0)
    if deadline_seconds is not None:
        signals.limit(deadline_seconds)
    return RetryPolicy(
        hold_lock=lambda _path, _name, _recorded: nullcontext(),
        signals=signals,
        warn=lambda _code, _message: None,
        requested_wait_seconds=requested_seconds,
        max_seconds=max_seconds,
    )


@pytest.mark.parametrize(
    ("requested", "longest", "seconds"),
    [(None, inf, 10.0), (0.0, inf, 0.0), (3.0, inf, 3.0), (3.0, 2.0, 2.0), (None, 4.0, 4.0)],
)
def test_a_lock_is_waited_for_as_long_as_requested_up_to_the_limit(
    requested: float | None,
    longest: float,
    seconds: float,
) -> None:
    assert make_policy(requested, longest, None).wait_seconds == seconds


@pytest.mark.parametrize(
    ("requested", "longest", "deadline", "at_least", "seconds"),
    [
        # Without a deadline of the process.
        (3.0, inf, None, 0.0, 3.0),
        (0.0, inf, None, 2.0, 2.0),
        (3.0, inf, None, 2.0, 3.0),
        (0.0, 1.0, None, 2.0, 1.0),
        # The closer one of the request and the deadline wins.
        (3.0, inf, 600.0, 0.0, 3.0),
        (30.0, inf, 5.0, 0.0, 5.0),
        (0.0, inf, 1.0, 2.0, 1.0),
        # Even at the deadline, a request gets a twentieth of the time.
        (0.0, inf, 0.0, 2.0, 0.1),
        (0.0, inf, 0.0, 0.0, 0.0),
    ],
)
def test_a_verb_may_take_the_requested_time_but_not_longer_than_the_process(
    requested: float,
    longest: float,
    deadline: float | None,
    at_least: float,
    seconds: float,
) -> None:
    policy = make_policy(requested, longest, deadline)

    assert policy.seconds_from_now(at_least) == pytest.approx(seconds)


def test_the_error_of_a_locked_store_has_the_time_that_was_waited() -> None:
    error = make_policy(1.5, inf, None).busy_error("state.db")

    assert error.context["store"] == "state.db"
    assert error.context["waited_ms"] == 1500
