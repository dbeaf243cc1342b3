"""sampletool/kit/contract/lock_held.py: who holds a lock, what to do, and when to retry."""

import random
from collections.abc import Callable
from typing import TypeVar

import pytest

from sampletool.kit.contract.lock_held import (
    describe_process,
    estimate_retry_ms,
    hint_for,
    message_for,
    propose_timeout_seconds,
)
from sampletool.kit.safety.errors import LockTimeout
from sampletool.kit.safety.holder import Holder, Owners

TRIES = 3


def outlasts(age_ms: float, lasts_ms: float, usual_ms: int | None) -> bool:
    """Return whether a caller who tries three times gets a lock that is held for `lasts_ms`.

    The caller finds the lock held since `age_ms`. Between two tries, it waits as the error says.
    """
    for _ in range(TRIES):
        if age_ms >= lasts_ms:
            return True
        age_ms += estimate_retry_ms(round(age_ms), usual_ms)
    return False


def test_three_tries_outlast_a_hold_of_the_usual_length() -> None:
    """A naive estimate gave 203, 460 and 707 ms for a build of 10 s, after its first second."""
    chance = random.Random(1)
    served = []

    for usual_ms in (50, 500, 10_000, 24_000):
        for _ in range(500):
            age_ms = chance.uniform(0, usual_ms)
            lasts_ms = usual_ms * chance.uniform(0.8, 1.25)
            served.append(outlasts(age_ms, lasts_ms, usual_ms))

    assert sum(served) >= 0.99 * len(served)


def waits_of_three_tries(age_ms: float, lasts_ms: float) -> list[float]:
    """Return the waits of the pasted loop, until it gets the lock or gives up.

    No usual duration is known. There are fewer than three waits if the loop gets the lock.
    """
    waits: list[float] = []
    for _ in range(TRIES):
        if age_ms + sum(waits) >= lasts_ms:
            break
        waits.append(estimate_retry_ms(round(age_ms + sum(waits)), None))
    return waits


@pytest.mark.parametrize("lasts_ms", [2_000, 5_000, 10_000, 30_000, 60_000])
@pytest.mark.parametrize("jitter", [1, 1.1, 1.25])
def test_three_tries_outlast_a_hold_of_a_minute_whose_usual_length_is_unknown(
    lasts_ms: int,
    jitter: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The loop of AGENTS.md finds the hold at any age. Its third wait is in vain."""
    monkeypatch.setattr(random, "uniform", lambda _low, _high: jitter)

    for age_ms in range(0, lasts_ms, 100):
        waits = waits_of_three_tries(age_ms, lasts_ms)

        assert len(waits) < TRIES, f"given up, found at an age of {age_ms} ms"
        too_long_ms = age_ms + sum(waits) - lasts_ms
        assert too_long_ms <= 60_000


@pytest.mark.parametrize(
    ("age_ms", "usual_ms", "least"),
    [
        (0, 5_000, 6_000),
        (4_000, 5_000, 1_200),
        (5_000, 5_000, 2_500),
        (30_000, 1_000, 15_000),
        (None, 5, 250),
        (0, 5, 250),
        (0, None, 12_000),
        (None, None, 12_000),
        (5_000, None, 25_000),
    ],
)
def test_the_wait_before_a_retry_is_long_enough_and_differs_between_callers(
    age_ms: int | None,
    usual_ms: int | None,
    least: int,
) -> None:
    waits = {estimate_retry_ms(age_ms, usual_ms) for _ in range(200)}

    assert least <= min(waits)
    assert max(waits) <= least * 1.25 + 1
    assert len(waits) > 20


@pytest.mark.parametrize(("age_ms", "usual_ms"), [(0, 10**9), (10**7, 10**9)])
def test_no_wait_is_longer_than_half_a_minute_if_the_usual_length_is_known(
    age_ms: int,
    usual_ms: int | None,
) -> None:
    waits = {estimate_retry_ms(age_ms, usual_ms) for _ in range(50)}

    assert max(waits) <= 30_000
    assert min(waits) >= 4_000
    assert len(waits) > 20


@pytest.mark.parametrize("age_ms", [12_000, 10**7])
def test_no_wait_is_longer_than_a_minute_if_the_usual_length_is_unknown(age_ms: int) -> None:
    waits = {estimate_retry_ms(age_ms, None) for _ in range(50)}

    assert waits == {60_000}


@pytest.mark.parametrize(
    ("age_ms", "usual_ms", "seconds"),
    [
        (0, None, 120),
        (None, None, 120),
        (29_000, None, 120),
        (60_001, None, 241),
        (0, 10_000, 30),
        (10_000, 59_999, 120),
        (60_000, 60_000, 120),
        (60_001, 60_000, 241),
    ],
)
def test_the_proposed_wait_suits_the_holder(
    age_ms: int | None,
    usual_ms: int | None,
    seconds: int,
) -> None:
    assert propose_timeout_seconds(age_ms, usual_ms) == seconds


def lock_timeout(*holders: Holder, shared: bool = False, timeout_seconds: float = 0) -> LockTimeout:
    """Return the exception about a lock that these processes hold."""
    owners = Owners(list(holders), shared=shared)
    return LockTimeout("build", owners, timeout_seconds=timeout_seconds)


Subject = TypeVar("Subject")


def text_of(write: Callable[[Subject], str], subject: Subject) -> str:
    """Return what the function writes. If it crashes, return that, for the comparison to show."""
    try:
        return write(subject)
    except Exception as problem:
        return f"crashed: {problem!r}"


RUNNING = Holder(12, "running", verified=True)
ORPHANED = Holder(12, "orphaned", verified=True, command="build", children=(13,))
ORPHANED_WITH_THREE = Holder(12, "orphaned", verified=True, children=(13, 14, 15))


@pytest.mark.parametrize(
    ("holder", "name"),
    [
        (RUNNING, "process 12"),
        (Holder(12, "running", verified=True, age_ms=30_000), "process 12, which started 30s ago"),
        (Holder(12, "running", verified=True, command="build"), "`tool build` (process 12)"),
        (
            Holder(12, "running", verified=True, command="note.digest"),
            "`tool note digest` (process 12)",
        ),
        (
            Holder(12, "running", verified=True, command="build", age_ms=0),
            "`tool build` (process 12), which started 0ms ago",
        ),
        (
            Holder(12, "unknown", verified=False, command="build", age_ms=500),
            "`tool build` (process 12), which started 500ms ago (not verified)",
        ),
    ],
)
def test_the_message_names_the_holder_as_far_as_it_is_known(holder: Holder, name: str) -> None:
    assert text_of(message_for, lock_timeout(holder)) == f'The lock "build" is held by {name}.'


def test_a_lock_that_changes_hands_has_no_holder_yet() -> None:
    message = text_of(message_for, lock_timeout())

    assert message == 'The lock "build" has just been taken by another process.'


def test_the_message_names_all_processes_that_share_a_lock() -> None:
    others = [Holder(pid, "running", verified=True) for pid in (13, 14)]

    one = text_of(message_for, lock_timeout(RUNNING, shared=True))
    three = text_of(message_for, lock_timeout(RUNNING, *others, shared=True))

    assert one == 'The lock "build" is shared by process 12.'
    assert three == 'The lock "build" is shared by processes 12, 13 and 14.'


def test_the_message_names_at_most_ten_processes() -> None:
    holders = [Holder(pid, "running", verified=True) for pid in range(1, 13)]

    ten = text_of(message_for, lock_timeout(*holders[:10], shared=True))
    twelve = text_of(message_for, lock_timeout(*holders, shared=True))

    assert ten.endswith(" processes 1, 2, 3, 4, 5, 6, 7, 8, 9 and 10.")
    assert twelve.endswith(" processes 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more.")


def test_an_orphaned_lock_is_held_by_the_children_of_its_holder() -> None:
    one_child = text_of(message_for, lock_timeout(ORPHANED))
    three_children = text_of(message_for, lock_timeout(ORPHANED_WITH_THREE))

    assert one_child == (
        'The lock "build" is still held by process 13. '
        "It inherited the lock from process 12, which has exited."
    )
    assert three_children == (
        'The lock "build" is still held by processes 13, 14 and 15. '
        "They inherited the lock from process 12, which has exited."
    )


def test_the_hint_for_an_orphaned_lock_is_the_command_that_terminates_its_holders() -> None:
    one_child = text_of(hint_for, lock_timeout(ORPHANED))
    three_children = text_of(hint_for, lock_timeout(ORPHANED_WITH_THREE))

    assert one_child == ("Wait until process 13 exits, or terminate it: `tool lock release build`.")
    assert three_children == (
        "Wait until processes 13, 14 and 15 exit, or terminate them: `tool lock release build`."
    )


@pytest.mark.parametrize(
    ("timeout_seconds", "proposed"),
    [(0, "2m"), (60, "2m"), (75, "2.5m"), (0.1, "2m")],
)
@pytest.mark.parametrize("holders", [[], [RUNNING]], ids=["unknown holder", "running holder"])
def test_the_hint_proposes_a_longer_wait_than_the_last_one(
    holders: list[Holder], timeout_seconds: float, proposed: str
) -> None:
    hint = text_of(hint_for, lock_timeout(*holders, timeout_seconds=timeout_seconds))

    assert hint == f"To wait for the lock, pass --lock-timeout {proposed}. Or try again later."


@pytest.mark.parametrize(
    ("holder", "description"),
    [
        (RUNNING, "process 12"),
        (
            Holder(7, "running", verified=True, started_at="2026-01-01T00:00:00Z", age_ms=2_000),
            "process 7, since 2026-01-01T00:00:00Z",
        ),
        (Holder(7, "unknown", verified=False), "process 7 (not verified)"),
    ],
)
def test_a_process_is_described_without_its_command(holder: Holder, description: str) -> None:
    assert text_of(describe_process, holder) == description
