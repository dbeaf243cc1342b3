"""What store.py says of tasks, executed on every backend."""

import time
from datetime import datetime, timedelta

import pytest

from sampletool.state.errors import LeaseLost, TaskConflict, TaskNotFailed, TaskNotFound
from sampletool.state.protocol import Fence, NewTask, Once
from sampletool.state.store import Store
from tests.state.support.claims import LONG, claim_one, fence
from tests.state.support.outcomes import outcome, raises, statuses


def test_tasks_are_claimed_in_the_order_of_adding(store: Store) -> None:
    store.task_add("work", [NewTask({"n": 1}, "a"), NewTask({"n": 2}, "b")])
    store.task_add("work", [NewTask({"n": 3}, "0")])

    claimed = store.task_claim("work", "ann", lease_ms=LONG, count=2).tasks

    assert [(task.id, task.generation, task.body) for task in claimed] == [
        ("a", 1, {"n": 1}),
        ("b", 1, {"n": 2}),
    ]
    assert claim_one(store).id == "0"
    assert store.task_claim("work", "ann", lease_ms=LONG).tasks == []


def test_an_empty_queue_has_nothing_to_claim(store: Store) -> None:
    assert store.task_claim("work", "ann", lease_ms=LONG).tasks == []
    assert statuses(store, "work") == {}
    assert store.task_list("work", None, 0, 10) == []


def test_adding_is_idempotent_by_id_and_all_or_nothing(store: Store) -> None:
    assert store.task_add("work", [NewTask("x", "a")]).effects == [("a", "created")]
    assert store.task_add("work", [NewTask("y", "b"), NewTask("x", "a")]).effects == [
        ("b", "created"),
        ("a", "unchanged"),
    ]

    for queue, body in (("work", "z"), ("other", "x")):
        with raises(TaskConflict) as refused:
            store.task_add(queue, [NewTask("new", "c"), NewTask(body, "a")])
        assert refused.value.context == {"task": "a"}

    assert [task.id for task in store.task_list(None, None, 0, 10)] == ["a", "b"]


def test_tasks_without_ids_get_ids_of_their_own(store: Store) -> None:
    added = store.task_add("work", [NewTask("same"), NewTask("same")]).effects

    assert len({task for task, _ in added}) == 2


def test_what_is_done_is_never_claimed_again(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store)

    assert store.task_finish("a", task.generation) == "updated"

    assert store.task_finish("a", task.generation) == "unchanged"
    assert store.task_claim("work", "bob", lease_ms=LONG).tasks == []
    assert store.task_add("work", [NewTask("x", "a")]).effects == [("a", "unchanged")]
    assert (statuses(store, "work"), store.task_left("work")) == ({"done": 1}, 0)
    with raises(LeaseLost):
        store.task_renew("a", task.generation, lease_ms=LONG)
    with raises(LeaseLost):
        store.task_release("a", task.generation)


def test_an_expired_claim_goes_to_the_next_with_a_higher_generation(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    late = claim_one(store, "ann", lease_ms=0)

    task = claim_one(store, "bob")

    assert (task.id, task.generation, task.attempts) == ("a", late.generation + 1, 2)
    for refused in (
        lambda: store.task_finish("a", late.generation),
        lambda: store.task_renew("a", late.generation, lease_ms=LONG),
        lambda: store.task_release("a", late.generation),
        lambda: store.counter_add("hits", 1, fence(late)),
        lambda: store.state_set("key", "late", once=fence(late)),
        lambda: store.state_unset("key", once=fence(late)),
        lambda: store.task_add("work", [NewTask("late", "late")], fence(late)),
    ):
        with raises(LeaseLost) as lost:
            refused()
        assert lost.value.context["actual_generation"] == task.generation
    assert store.counter_get("hits") == 0
    assert store.task_finish("a", task.generation) == "updated"
    assert claim_one(store).id == "b"


def test_renewing_after_expiry_is_refused_even_if_nobody_claimed_it(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, lease_ms=0)

    with raises(LeaseLost):
        store.task_renew("a", task.generation, lease_ms=LONG)

    assert store.task_list("work", "expired", 0, 10)[0].id == "a"
    assert store.task_finish("a", task.generation) == "updated"


def test_renewing_in_time_keeps_the_task(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store)

    ends = store.task_renew("a", task.generation, lease_ms=2 * LONG)

    assert ends > task.lease_expires_at
    assert store.task_claim("work", "bob", lease_ms=LONG).tasks == []


def test_releasing_ends_the_claim(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    task = claim_one(store)

    assert store.task_release("a", task.generation) == "updated"

    assert store.task_release("a", task.generation) == "unchanged"
    asks = (
        lambda: store.task_finish("a", task.generation),
        lambda: store.task_renew("a", task.generation, lease_ms=LONG),
        lambda: store.counter_add("hits", 1, fence(task)),
    )
    assert {outcome(ask) for ask in asks} == {"LEASE_LOST"}
    again = claim_one(store)
    assert (again.id, again.generation) == ("a", 2)


def test_a_delayed_task_is_free_but_nobody_gets_it_yet(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    store.task_release("a", claim_one(store).generation, delay_ms=LONG)

    assert store.task_claim("work", "bob", lease_ms=LONG).tasks == []
    assert statuses(store, "work") == {"free": 1}


@pytest.mark.parametrize("ends", ["released", "expired"])
def test_after_its_last_attempt_a_task_is_failed(store: Store, ends: str) -> None:
    store.task_add("work", [NewTask("x", "a")])

    for attempt in (1, 2):
        task = claim_one(store, lease_ms=0 if ends == "expired" else LONG, max_attempts=2)
        assert task.attempts == attempt
        if ends == "released":
            store.task_release("a", task.generation)

    assert store.task_left("work") == 0
    assert store.task_claim("work", "bob", lease_ms=LONG).tasks == []
    assert statuses(store) == {"failed": 1}
    assert [found.status for found in store.task_list(None, "failed", 0, 10)] == ["failed"]


def test_a_task_shows_who_holds_it(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("y", "b")])
    task = claim_one(store, "ann")

    held, free = store.task_list("work", None, 0, 10)

    assert (held.status, held.claimed_by, held.generation, held.attempts) == (
        "claimed",
        "ann",
        task.generation,
        1,
    )
    assert held.lease_expires_at == task.lease_expires_at
    claimed_at, ends_at = (
        datetime.fromisoformat(str(at)) for at in (held.claimed_at, held.lease_expires_at)
    )
    assert ends_at - claimed_at == timedelta(milliseconds=LONG)
    assert (free.status, free.claimed_by, free.generation, free.body) == ("free", None, 0, "y")
    assert statuses(store, "work") == {"claimed": 1, "free": 1}


def test_tasks_are_listed_in_pages_by_queue_and_status(store: Store) -> None:
    store.task_add("work", [NewTask(n, f"w{n}") for n in range(5)])
    store.task_add("other", [NewTask(n, f"o{n}") for n in range(2)])
    for _ in range(2):
        task = claim_one(store)
        store.task_finish(task.id, task.generation)

    page = store.task_list("work", "free", 0, 2)
    rest = store.task_list("work", "free", page[-1].position, 2)

    assert [task.id for task in page + rest] == ["w2", "w3", "w4"]
    assert [task.id for task in store.task_list(None, None, 0, 100)] == [
        "w0",
        "w1",
        "w2",
        "w3",
        "w4",
        "o0",
        "o1",
    ]
    assert statuses(store) == {"free": 5, "done": 2}


def test_a_task_that_is_not_there_is_said_so(store: Store) -> None:
    asks = (
        lambda: store.task_finish("none", 1),
        lambda: store.task_renew("none", 1, lease_ms=LONG),
        lambda: store.task_release("none", 1),
        lambda: store.counter_add("hits", 1, Once(fence=Fence("none", 1))),
    )
    assert {outcome(ask) for ask in asks} == {"TASK_NOT_FOUND"}


def test_a_task_that_is_added_with_a_delay_waits(store: Store) -> None:
    store.task_add("work", [NewTask("x", "later")], delay_ms=LONG)
    store.task_add("work", [NewTask("x", "soon")], delay_ms=1)
    store.task_add("work", [NewTask("x", "now")])

    assert store.task_left("work") == 3
    claimed: list[str] = []
    deadline = time.monotonic() + 30
    while len(claimed) < 2 and time.monotonic() < deadline:
        claimed += [
            task.id for task in store.task_claim("work", "ann", lease_ms=LONG, count=9).tasks
        ]
    assert sorted(claimed) == ["now", "soon"]
    later, *_ = store.task_list("work", "free", 0, 9)
    assert (later.free_at is not None, later.lease_expires_at) == (True, None)


def test_a_free_task_has_no_time_that_a_clock_could_put_off(store: Store) -> None:
    """The clock of a server may have been ahead when it was added."""
    store.task_add("work", [NewTask("x", "a")])
    assert store.task_list("work", None, 0, 9)[0].free_at is None

    store.task_release("a", claim_one(store).generation)

    assert store.task_list("work", None, 0, 9)[0].free_at is None


@pytest.mark.parametrize("ends", ["released", "expired", "swept"])
def test_a_failed_task_can_be_tried_again(store: Store, ends: str) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    task = claim_one(store, lease_ms=LONG if ends == "released" else 0, max_attempts=1)
    if ends == "released":
        store.task_release("a", task.generation)
    elif ends == "swept":
        assert claim_one(store).id == "b"

    assert store.task_retry("a") == "updated"

    assert store.task_retry("a") == "unchanged"
    again = claim_one(store)
    assert (again.id, again.attempts) == ("a", 1)
    assert again.generation > task.generation
    with raises(LeaseLost):
        store.task_finish("a", task.generation)
    with raises(TaskNotFailed):
        store.task_retry("a")
    with raises(TaskNotFound):
        store.task_retry("none")


def test_what_ended_long_ago_is_removed_with_what_its_fences_remember(store: Store) -> None:
    store.task_add("work", [NewTask("x", f"{n}") for n in range(7)])
    for n in range(3):
        task = claim_one(store)
        store.counter_add("hits", 1, fence(task))
        store.task_finish(f"{n}", task.generation)
    store.task_release("3", claim_one(store, max_attempts=1).generation)
    claim_one(store)

    assert store.task_clean(LONG, ["done", "failed"]) == (0, 0)
    removed, after = store.task_clean(0, ["done"], limit=2)
    assert removed == 2
    assert after > 0
    assert store.task_clean(0, ["done"], after)[0] == 1
    assert statuses(store, "work") == {"failed": 1, "claimed": 1, "free": 2}
    assert store.task_clean(0, ["done", "failed"])[0] == 1
    assert [task.id for task in store.task_list(None, None, 0, 9)] == ["4", "5", "6"]

    assert store.task_add("new", [NewTask("x", "0")]).effects == [("0", "created")]
    (task,) = store.task_claim("new", "ann", lease_ms=LONG).tasks
    assert store.counter_add("hits", 1, fence(task)).replayed is False


def test_more_tasks_than_one_call_looks_at_are_listed_and_counted(store: Store) -> None:
    for start in (0, 600):
        store.task_add("work", [NewTask(n, str(n)) for n in range(start, start + 600)])
    store.task_add("other", [NewTask(n, f"o{n}") for n in range(3)])
    claimed = store.task_claim("work", "ann", lease_ms=0, count=500).tasks
    (task,) = store.task_claim("other", "ann", lease_ms=LONG).tasks

    assert [found.id for found in store.task_list(None, "claimed", 0, 5)] == [task.id]
    assert len(store.task_list("work", "expired", 0, 2000)) == 500
    assert len(store.task_list("work", None, 0, 600)) == 600
    assert len(store.task_list("work", "free", 0, 600)) == 600
    assert store.task_left("work") == 1200
    assert store.task_left("work", 1) == 1
    again = store.task_claim("work", "bob", lease_ms=LONG, count=3).tasks
    assert [found.id for found in again] == [found.id for found in claimed[:3]]
    assert statuses(store, "work")["free"] == 700


# Claims that were not used


@pytest.mark.parametrize("max_attempts", [1, 3])
def test_an_attempt_that_was_not_used_does_not_count(store: Store, max_attempts: int) -> None:
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, max_attempts=max_attempts)

    assert store.task_release("a", task.generation, is_unused=True) == "updated"
    assert store.task_release("a", task.generation, is_unused=True) == "unchanged"

    again = claim_one(store, max_attempts=max_attempts)
    assert (again.generation, again.attempts) == (2, 1)
    with raises(LeaseLost):
        store.task_release("a", task.generation, is_unused=True)


def test_an_unused_claim_that_has_expired_can_be_given_back(store: Store) -> None:
    """Nobody has claimed the task since, so it has not failed."""
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, lease_ms=0, max_attempts=1)
    assert store.task_claim("work", "bob", lease_ms=LONG).tasks == []
    assert store.task_show("a").task.status == "failed"

    store.task_release("a", task.generation, is_unused=True)

    assert store.task_show("a").task.status == "free"
    assert claim_one(store).attempts == 1


def test_an_unused_claim_can_be_given_back_with_a_delay(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store)

    store.task_release("a", task.generation, delay_ms=LONG, is_unused=True)

    assert store.task_claim("work", "bob", lease_ms=LONG).tasks == []
    assert store.task_left("work") == 1


def test_a_repeated_claim_of_no_tasks_returns_those_of_the_first_request(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    (first,) = store.task_claim("work", "ann", lease_ms=LONG, request_id="one").tasks

    def repeat(request_id: str) -> list[str]:
        claim = store.task_claim(
            "work",
            "ann",
            lease_ms=LONG,
            count=0,
            request_id=request_id,
            is_repetition=True,
        )
        return [task.id for task in claim.tasks]

    assert repeat("one") == [first.id]
    assert repeat("other") == []
    assert statuses(store, "work") == {"claimed": 1, "free": 1}
