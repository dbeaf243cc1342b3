"""LOCK_HELD: who has the lock, and when it is worth coming back."""

import random

import pytest

from sampletool.kit.contract.library_errors import to_tool_error
from sampletool.kit.contract.lock_held import estimate_retry_ms, hint_for
from sampletool.kit.safety.errors import LockTimeout
from sampletool.kit.safety.holder import Holder, Owners

TRIES = 3


def outlasts(age_ms: float, lasts_ms: float, usual_ms: int | None) -> bool:
    """The loop that callers paste: three tries, and between them the wait that the answer hints at."""
    for _ in range(TRIES):
        if age_ms >= lasts_ms:
            return True
        age_ms += estimate_retry_ms(round(age_ms), usual_ms)
    return False


def test_three_tries_outlast_a_hold_of_the_usual_length() -> None:
    """Naive: of a 10 s build that is met after 1 s the hints were 203, 460 and 707 ms."""
    chance = random.Random(1)
    met = [(usual, chance.uniform(0, usual), usual * chance.uniform(0.8, 1.25)) for usual in (50, 500, 10_000, 24_000)]
    served = [outlasts(age, lasts, usual) for usual, age, lasts in met * 500]

    assert sum(served) >= 0.99 * len(served)


@pytest.mark.parametrize("lasts_ms", [2_000, 5_000, 10_000])
@pytest.mark.parametrize("age_ms", [0, 1_000])
def test_three_tries_outlast_a_hold_of_some_seconds_of_which_nothing_is_known(age_ms: int, lasts_ms: int) -> None:
    assert all(outlasts(age_ms, lasts_ms, None) for _ in range(100))


@pytest.mark.parametrize(
    ("age_ms", "usual_ms", "least"),
    [
        (0, 5_000, 6_000),
        (4_000, 5_000, 1_200),
        (5_000, 5_000, 2_500),
        (30_000, 1_000, 15_000),
        (None, 5, 250),
        (0, 5, 250),
        (0, None, 4_000),
        (5_000, None, 10_000),
    ],
)
def test_a_hint_is_never_too_short_and_a_crowd_does_not_come_back_together(
    age_ms: int | None, usual_ms: int | None, least: int
) -> None:
    hints = {estimate_retry_ms(age_ms, usual_ms) for _ in range(200)}

    assert least <= min(hints)
    assert max(hints) <= least * 1.25 + 1
    assert len(hints) > 20


def test_no_hint_is_longer_than_half_a_minute() -> None:
    hints = {estimate_retry_ms(age, usual) for age in (0, 10**7) for usual in (None, 10**9) for _ in range(50)}

    assert max(hints) <= 30_000
    assert min(hints) >= 4_000
    assert len(hints) > 20


def test_an_orphaned_lock_comes_with_the_way_to_free_it() -> None:
    orphaned = to_tool_error(LockTimeout("build", Owners([Holder(12, "orphaned", True, children=(13,))])))
    running = to_tool_error(LockTimeout("build", Owners([Holder(12, "running", True)])))

    assert "`tool lock release build`" in orphaned.suggestion
    assert "release" not in running.suggestion


def test_the_advice_names_a_wait_that_is_longer_than_the_last_one() -> None:
    advice = [hint_for(LockTimeout("build", Owners([]), timeout_seconds=waited)) for waited in (0, 60)]

    assert advice == [
        "Try again later. To wait for the lock, pass --lock-timeout 30s.",
        "Try again later. To wait for the lock, pass --lock-timeout 2m.",
    ]
