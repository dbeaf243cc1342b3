"""Repeat a function that fails because of the outside world, such as a server that restarts.

The pause between two attempts is random, up to a limit that doubles each time (*full jitter*).
Without the doubling, the clients of a busy server would keep it busy. Without the random part,
clients that failed at the same moment would come back at the same moment, again and again.

Retrying is safe only if the function is *idempotent*: two calls have the same effect as one. After
a connection has broken, the server may have done its work or not.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..safety.errors import DeadlineExceeded, Interrupted
from ..safety.signals import Signals

T = TypeVar("T")


_MAX_DOUBLINGS = 30
"""More would exceed the largest number after a thousand attempts. 30 make 0.5 s 17 years."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often to try, and how long to pause in between."""

    max_attempts: int = 5
    first_pause_seconds: float = 0.5
    """The limit of the pause after the first attempt. It doubles after each further attempt."""
    longest_pause_seconds: float = 30.0

    def pause_limit(self, attempt: int) -> float:
        """Return the longest pause after this attempt. The first attempt is number 1."""
        doublings = min(attempt - 1, _MAX_DOUBLINGS)
        doubled_seconds = self.first_pause_seconds * 2.0**doublings
        return min(doubled_seconds, self.longest_pause_seconds)


class RetriesExhausted(Exception):
    """The error of a function that has failed each time. Its cause is the last failure."""

    def __init__(self, attempts: int, last_error: Exception) -> None:
        """Say how often the function was tried, and why it failed the last time."""
        # Some errors of libraries have no text, only a class.
        reason = str(last_error) or type(last_error).__name__
        times = "once" if attempts == 1 else f"{attempts} times"
        super().__init__(f"{reason} (tried {times})")
        self.attempts = attempts
        self.last_error = last_error


def _no_notice(_line: str) -> None:
    """Say nothing about failed attempts."""


def run_with_retries(
    function: Callable[[], T],
    retry_on: tuple[type[Exception], ...],
    policy: RetryPolicy,
    signals: Signals,
    changes: str | None = None,
    notice: Callable[[str], None] = _no_notice,
    random_number: Callable[[], float] = random.random,
) -> T:
    """Return what the function returns. If it raises one of `retry_on`, pause and try again.

    Raise RetriesExhausted after the last attempt, or earlier if the deadline would pass during the
    pause. Raise any other error of the function as it is. A signal ends the pause: raise
    Interrupted, with `changes` as the change that a failed attempt may have made.

    `notice` gets a line about each failed attempt. `random_number` returns a number from 0 to 1.
    """
    attempt = 1
    while True:
        try:
            return function()
        except (Interrupted, DeadlineExceeded):
            # `retry_on` may be as wide as Exception, but a command that has to stop must stop.
            raise
        except retry_on as error:
            pause_seconds = random_number() * policy.pause_limit(attempt)
            is_last_attempt = attempt >= policy.max_attempts
            if is_last_attempt or not _has_time_for(pause_seconds, signals):
                raise RetriesExhausted(attempt, error) from error
            failure = f"attempt {attempt} of {policy.max_attempts} failed: {error}"
            notice(f"{failure}. Trying again in {pause_seconds:.1f} s")
        signals.wait(pause_seconds)
        signals.check(uncertain_change=changes)
        attempt += 1


def _has_time_for(pause_seconds: float, signals: Signals) -> bool:
    """Return whether the deadline is later than the end of a pause that begins now."""
    seconds_left = signals.seconds_left
    return seconds_left is None or pause_seconds < seconds_left
