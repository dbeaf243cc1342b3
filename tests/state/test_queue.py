"""More verbs of a queue: cancel, show, results, failures, counts, newest first, retry all."""

from collections.abc import Callable

import pytest

from sampletool.state.errors import LeaseLost, TaskEnded, TaskNotFailed, TaskNotFound
from sampletool.state.protocol import FailedRun, Fence, NewTask, Once, QueueStats
from sampletool.state.store import Store
from tests.state.support.claims import LONG, claim_one
from tests.state.support.outcomes import raises
from tests.state.support.stores import SharedBackend

# Cancel


def test_a_cancelled_task_is_not_claimed_any_more(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    store.task_add("work", [NewTask("x", "later")], delay_ms=LONG)

    assert store.task_cancel("a") == "updated"
    assert store.task_cancel("later") == "updated"
    assert store.task_cancel("a") == "unchanged"

    assert claim_one(store).id == "b"
    assert store.task_claim("work", "ann", lease_ms=LONG).tasks == []
    assert [task.status for task in store.task_list("work", None, 0, 9)] == [
        "cancelled",
        "claimed",
        "cancelled",
    ]
    assert store.task_left("work") == 1


def test_cancelling_a_claimed_task_ends_its_claim(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    claimed = claim_one(store)

    store.task_cancel("a")

    with raises(LeaseLost):
        store.task_renew("a", claimed.generation, lease_ms=LONG)
    with raises(LeaseLost):
        store.task_finish("a", claimed.generation)
    with raises(LeaseLost):
        store.counter_add("hits", 1, Once(fence=Fence("a", claimed.generation)))


def test_a_task_whose_lease_has_expired_can_be_cancelled(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    claim_one(store, lease_ms=0)

    assert store.task_cancel("a") == "updated"

    assert store.task_claim("work", "bob", lease_ms=LONG).tasks == []


def test_a_task_that_has_ended_cannot_be_cancelled(store: Store) -> None:
    store.task_add("work", [NewTask("x", "done"), NewTask("x", "failed")])
    store.task_finish("done", claim_one(store).generation)
    claim_one(store, lease_ms=0, max_attempts=1)

    for task in ("done", "failed"):
        with raises(TaskEnded, match=task):
            store.task_cancel(task)
    with raises(TaskNotFound):
        store.task_cancel("none")


def test_a_cancelled_task_is_neither_retried_nor_kept_by_clean(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    store.task_cancel("a")

    with raises(TaskNotFailed):
        store.task_retry("a")

    assert store.task_clean(0, ["done", "failed"])[0] == 0
    assert store.task_clean(0, ["cancelled"])[0] == 1


# Show


def test_a_task_shows_its_result(store: Store) -> None:
    store.task_add("work", [NewTask({"to": "ann"}, "a")])
    claimed = claim_one(store)
    assert store.task_show("a").result is None

    store.task_finish("a", claimed.generation, result={"sent": [1, None, "\0"]})

    shown = store.task_show("a")
    assert (shown.task.status, shown.task.body) == ("done", {"to": "ann"})
    assert shown.result == {"sent": [1, None, "\0"]}
    with raises(TaskNotFound):
        store.task_show("b")


def test_a_task_shows_the_exit_codes_of_its_failures_and_the_last_output(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])

    for exit_code, tail in ((1, "first"), (-9, "last\0\ud800")):
        claimed = claim_one(store)
        store.task_release("a", claimed.generation, failure=FailedRun(exit_code, tail))

    shown = store.task_show("a")
    assert (shown.task.attempts, shown.exit_codes, shown.failure_tail) == (
        2,
        [1, -9],
        "last\0\ud800",
    )


def test_a_task_keeps_the_last_twenty_exit_codes(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])

    for exit_code in range(1, 23):
        store.task_release("a", claim_one(store).generation, failure=FailedRun(exit_code, ""))

    assert store.task_show("a").exit_codes == list(range(3, 23))


def test_a_claim_that_is_lost_reports_no_failure(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    late = claim_one(store, lease_ms=0)
    claim_one(store)

    with raises(LeaseLost):
        store.task_release("a", late.generation, failure=FailedRun(1, "late"))

    assert store.task_show("a").exit_codes == []


# The limit of attempts


def test_the_limit_of_a_task_wins_over_that_of_a_claim(store: Store) -> None:
    store.task_add("work", [NewTask("x", "once")], max_attempts=1)
    store.task_add("work", [NewTask("x", "always")], max_attempts=0)
    store.task_add("work", [NewTask("x", "default")])
    tasks = store.task_claim("work", "ann", lease_ms=LONG, count=3, max_attempts=1).tasks

    for task in tasks:
        store.task_release(task.id, task.generation)

    statuses = {task.id: task.status for task in store.task_list("work", None, 0, 9)}
    assert statuses == {"once": "failed", "always": "free", "default": "failed"}
    assert [store.task_show(name).max_attempts for name in ("once", "always", "default")] == [
        1,
        0,
        1,
    ]


# Counts, and all failed tasks


def test_counts_are_of_the_status_that_a_task_has_now(store: Store) -> None:
    store.task_add("work", [NewTask("x", f"{number}") for number in range(7)])
    store.task_add("other", [NewTask("x", "other")])
    store.task_finish("0", claim_one(store).generation)
    store.task_release("1", claim_one(store, max_attempts=1).generation)
    claim_one(store)  # claimed: 2
    store.task_cancel("6")
    claim_one(store, lease_ms=0)  # expired: 3
    store.task_claim("work", "ann", lease_ms=0, max_attempts=1)  # 3 again, and failed

    work = QueueStats("work", free=2, claimed=1, done=1, failed=2, cancelled=1)
    assert store.task_stats() == [QueueStats("other", free=1), work]
    assert store.task_stats("work") == [work]
    assert store.task_stats("none") == [QueueStats("none")]


def test_expired_claims_are_counted_as_expired(store: Store) -> None:
    store.task_add("work", [NewTask("x", f"{number}") for number in range(3)])
    store.task_claim("work", "ann", lease_ms=0, count=2)
    claim_one(store)

    assert store.task_stats("work") == [QueueStats("work", free=1, claimed=1, expired=1)]


def test_all_failed_tasks_of_a_queue_are_tried_again(store: Store) -> None:
    store.task_add("work", [NewTask("x", f"{number}") for number in range(4)])
    store.task_add("other", [NewTask("x", "other")])
    for task in store.task_claim("work", "ann", lease_ms=LONG, count=2, max_attempts=1).tasks:
        store.task_release(task.id, task.generation)
    store.task_claim("work", "ann", lease_ms=0, max_attempts=1)
    (other,) = store.task_claim("other", "ann", lease_ms=LONG, max_attempts=1).tasks
    store.task_release("other", other.generation)

    assert store.task_retry_all("work", 2) == 2
    assert store.task_retry_all("work", 2) == 1
    assert store.task_retry_all("work", 2) == 0

    assert store.task_stats() == [QueueStats("other", failed=1), QueueStats("work", free=4)]
    assert [task.attempts for task in store.task_list("work", None, 0, 9)] == [0, 0, 0, 0]


# Lists


def test_tasks_can_be_listed_newest_first(store: Store) -> None:
    store.task_add("work", [NewTask("x", f"{number}") for number in range(5)])
    store.task_add("other", [NewTask("x", "other")])

    first = store.task_list("work", None, 0, 2, newest_first=True)
    rest = store.task_list("work", None, first[-1].position, 9, newest_first=True)

    assert [task.id for task in first + rest] == ["4", "3", "2", "1", "0"]
    assert [task.id for task in store.task_list(None, "free", 0, 2, newest_first=True)] == [
        "other",
        "4",
    ]


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_list_of_a_status_has_each_task_once_whether_or_not_a_claim_has_noticed_its_end(
    store: Store, newest_first: bool
) -> None:
    """The index does not know yet that a lease has expired."""
    store.task_add("work", [NewTask("x", f"{number:02}") for number in range(12)])
    store.task_claim("work", "ann", lease_ms=0, count=4, max_attempts=1)
    store.task_claim("work", "ann", lease_ms=0, count=4, max_attempts=1)  # notices those above
    store.task_claim("work", "ann", lease_ms=LONG, count=2)

    found: list[str] = []
    after = 0
    while page := store.task_list("work", "failed", after, 3, newest_first=newest_first):
        found += [task.id for task in page]
        after = page[-1].position

    expected = [f"{number:02}" for number in range(8)]
    assert found == (expected[::-1] if newest_first else expected)
    assert [task.id for task in store.task_list("work", "claimed", 0, 9)] == ["08", "09"]
    assert [task.id for task in store.task_list(None, "free", 0, 9)] == ["10", "11"]


@pytest.mark.parametrize(("max_attempts", "status"), [(0, "expired"), (1, "failed")])
def test_a_list_of_a_status_has_only_the_tasks_of_its_queue(
    store: Store, max_attempts: int, status: str
) -> None:
    """No claim has noticed yet that the leases have expired."""
    for queue in ("work", "other"):
        store.task_add(queue, [NewTask("x", queue)])
        store.task_claim(queue, "ann", lease_ms=0, max_attempts=max_attempts)

    listed = store.task_list("work", status, 0, 9)
    first = store.task_list(None, status, 0, 1)

    assert [(task.id, task.status) for task in listed] == [("work", status)]
    assert [task.id for task in first] == ["work"]
    assert [task.id for task in store.task_list(None, status, first[0].position, 9)] == ["other"]


def test_a_store_of_an_earlier_version_lists_its_tasks_by_status(
    make_backend: Callable[[str], SharedBackend],
) -> None:
    """Its tasks are in no set of a status. The first write of this version puts them there."""
    import redis

    backend = make_backend("valkey")
    store = backend.open()
    store.task_add("work", [NewTask("x", f"{number:04}") for number in range(900)])
    store.task_finish("0000", claim_one(store).generation)
    with redis.Redis.from_url(backend.url) as admin:
        admin.delete("{sampletool}:migrated", "{sampletool}:queues")
        for key in admin.keys("{sampletool}:status:*"):
            admin.delete(key)
        for key in admin.keys("{sampletool}:task:*"):
            admin.hdel(key, "shown")
    fresh = backend.open()
    assert [task.id for task in fresh.task_list("work", "done", 0, 9)] == ["0000"]

    fresh.counter_add("hits", 1)

    assert [task.id for task in fresh.task_list("work", "done", 0, 9)] == ["0000"]
    assert fresh.task_stats() == [QueueStats("work", free=899, done=1)]
