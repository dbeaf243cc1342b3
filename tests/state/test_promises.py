"""What promises.py says, executed on every backend: first the meaning of each verb, then many clients at once."""

import json
import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import pytest

from sampletool.kit.contract.errors import InvalidValues, KeyNotFound, VersionConflict
from sampletool.kit.testing.scale import scale
from sampletool.state.errors import (
    CounterRange,
    IdempotencyKeyReused,
    LeaseLost,
    TaskConflict,
    TaskNotFailed,
    TaskNotFound,
)
from sampletool.state.promises import LARGEST, Claimed, Fence, NewTask, Once
from sampletool.state.store import Store
from sampletool.state.update import update
from tests.state.support.outcomes import outcome, statuses
from tests.state.support.stores import Backend, SharedBackend

LONG = 3_600_000


def claim_one(store: Store, worker: str = "ann", lease_ms: int = LONG, **options: Any) -> Claimed:
    (task,) = store.task_claim("work", worker, lease_ms=lease_ms, **options).tasks
    return task


def fence(task: Claimed) -> Once:
    return Once(fence=Fence(task.id, task.generation))


# Counters


def test_an_addition_answers_the_value_it_made(store: Store) -> None:
    assert store.counter_get("hits") == 0
    assert store.counter_add("hits", 1).effect == "created"

    added = store.counter_add("hits", 5)

    assert (added.value, added.effect, added.replayed) == (6, "updated", False)
    assert store.counter_add("hits", -10).value == -4
    assert store.counter_get("hits") == -4


@pytest.mark.parametrize("sign", [1, -1])
def test_a_counter_stays_within_what_json_carries_exactly(store: Store, sign: int) -> None:
    assert outcome(lambda: store.counter_add("hits", sign * LARGEST).value) == sign * LARGEST

    for amount in (1, LARGEST):
        with pytest.raises(CounterRange):
            store.counter_add("hits", sign * amount)

    assert store.counter_get("hits") == sign * LARGEST
    assert store.counter_add("hits", -sign).value == sign * (LARGEST - 1)


def test_counters_are_listed_in_pages_that_miss_nothing(store: Store) -> None:
    names = sorted(["a", "b", "ä", "Z", "a b", "🙂", "a:b", "10", "9"])
    for name in names:
        store.counter_add(name, 1)

    pages, after = [], ""
    while page := store.counter_list(after, 2):
        pages += [name for name, _ in page]
        after = pages[-1]

    assert pages == names


# Values


@pytest.mark.parametrize(
    "value",
    [
        "",
        "\0",
        "a\0b",
        "\ud800",
        "🙂",
        "line\nbreak",
        "x" * 1024 * 1024,
        None,
        0,
        False,
        2**53 - 1,
        1.5,
        [],
        {"a": [1, {}]},
    ],
    ids=lambda value: repr(value)[:12],
)
def test_a_value_comes_back_as_it_was(store: Store, value: Any) -> None:
    assert outcome(lambda: store.state_set("key", value).version) == 1

    found = store.state_get("key").value

    assert found == value
    assert type(found) is type(value)


def test_a_version_changes_with_every_set(store: Store) -> None:
    first = store.state_set("key", "a")
    second = store.state_set("key", "a")

    assert (first.effect, second.effect) == ("created", "updated")
    assert (first.version, second.version) == (1, 2)
    assert store.state_get("key").version == 2


def test_a_version_is_never_used_twice_not_even_after_unset_or_expiry(store: Store) -> None:
    seen = [store.state_set("key", "a").version, store.state_set("key", "b").version]
    store.state_unset("key")
    seen.append(store.state_set("key", "c", expires_ms=0).version)
    seen.append(store.state_set("key", "d", expires_ms=0).version)
    store.state_set("other", "sweeps what has expired")
    seen.append(store.state_set("key", "e").version)

    assert seen == sorted(set(seen))


def test_a_stale_version_changes_nothing_and_names_the_actual_one(store: Store) -> None:
    read = store.state_set("key", "mine").version
    store.state_set("key", "theirs")

    changes: list[Callable[[], object]] = [
        lambda: store.state_set("key", "late", if_version=read),
        lambda: store.state_unset("key", if_version=read),
    ]
    for change in changes:
        with pytest.raises(VersionConflict) as refused:
            change()
        assert refused.value.context == {"key": "key", "expected": 1, "actual": 2}

    assert store.state_get("key").value == "theirs"
    assert store.state_set("key", "late", if_version=2).version == 3


def test_version_0_means_only_if_there_is_none(store: Store) -> None:
    assert store.state_set("key", "first", if_version=0).effect == "created"

    with pytest.raises(VersionConflict):
        store.state_set("key", "second", if_version=0)

    store.state_unset("key")
    assert store.state_set("key", "third", if_version=0).effect == "created"
    assert store.state_unset("missing", if_version=0).effect == "unchanged"


def test_an_expired_value_is_gone(store: Store) -> None:
    store.state_set("key", "short", expires_ms=0)

    with pytest.raises(KeyNotFound):
        store.state_get("key")
    with pytest.raises(VersionConflict):
        store.state_set("key", "x", if_version=1)
    assert store.state_list("", "", 10) == []
    assert store.state_unset("key").effect == "unchanged"
    assert store.state_set("key", "new", if_version=0, expires_ms=LONG).effect == "created"
    assert store.state_get("key").value == "new"


def test_setting_again_without_an_end_takes_the_end_away(store: Store) -> None:
    assert store.state_set("key", "a", expires_ms=LONG).effect == "created"
    assert store.state_get("key").expires_at is not None

    store.state_set("key", "b")

    assert store.state_get("key").expires_at is None


def test_values_are_listed_by_prefix_in_pages(store: Store) -> None:
    for number in range(7):
        store.state_set(f"plan.{number}", number)
    store.state_set("plan", "without the dot")
    store.state_set("plao", "behind")

    first = store.state_list("plan.", "", 4)
    second = store.state_list("plan.", first[-1].key, 4)

    assert [value.value for value in first + second] == list(range(7))
    assert store.state_list("none", "", 4) == []


def test_unset_removes_and_twice_is_once(store: Store) -> None:
    store.state_set("key", "a")

    assert store.state_unset("key").effect == "deleted"
    assert store.state_unset("key").effect == "unchanged"
    with pytest.raises(KeyNotFound):
        store.state_get("key")


def test_many_keys_are_listed_stably(store: Store) -> None:
    many = scale(100, 10_000)
    for number in range(many):
        store.counter_add(f"c{number:05}", 1)
        if number % 10 == 0:
            store.state_set(f"s{number:05}", number)

    listed = [name for name, _ in store.counter_list("", many)]

    assert listed == sorted(f"c{number:05}" for number in range(many))
    assert listed == [name for name, _ in store.counter_list("", many)]
    assert [value.value for value in store.state_list("", "", many)] == list(range(0, many, 10))


# Tasks


def test_tasks_are_claimed_in_the_order_of_adding(store: Store) -> None:
    store.task_add("work", [NewTask({"n": 1}, "a"), NewTask({"n": 2}, "b")])
    store.task_add("work", [NewTask({"n": 3}, "0")])

    claimed = store.task_claim("work", "ann", lease_ms=LONG, count=2).tasks

    assert [(task.id, task.generation, task.body) for task in claimed] == [("a", 1, {"n": 1}), ("b", 1, {"n": 2})]
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
        with pytest.raises(TaskConflict):
            store.task_add(queue, [NewTask("new", "c"), NewTask(body, "a")])

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
    with pytest.raises(LeaseLost):
        store.task_renew("a", task.generation, lease_ms=LONG)
    with pytest.raises(LeaseLost):
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
        with pytest.raises(LeaseLost) as lost:
            refused()
        assert lost.value.context["actual_generation"] == task.generation
    assert store.counter_get("hits") == 0
    assert store.task_finish("a", task.generation) == "updated"
    assert claim_one(store).id == "b"


def test_renewing_after_expiry_is_refused_even_if_nobody_claimed_it(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    task = claim_one(store, lease_ms=0)

    with pytest.raises(LeaseLost):
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
    for refused in (
        lambda: store.task_finish("a", task.generation),
        lambda: store.task_renew("a", task.generation, lease_ms=LONG),
        lambda: store.counter_add("hits", 1, fence(task)),
    ):
        with pytest.raises(LeaseLost):
            refused()
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

    assert store.task_claim("work", "bob", lease_ms=LONG).tasks == []
    assert statuses(store) == {"failed": 1}
    assert [found.status for found in store.task_list(None, "failed", 0, 10)] == ["failed"]


def test_a_task_shows_who_holds_it(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("y", "b")])
    task = claim_one(store, "ann")

    held, free = store.task_list("work", None, 0, 10)

    assert (held.status, held.claimed_by, held.generation, held.attempts) == ("claimed", "ann", task.generation, 1)
    assert held.lease_expires_at == task.lease_expires_at
    claimed_at, ends_at = (datetime.fromisoformat(str(at)) for at in (held.claimed_at, held.lease_expires_at))
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
    assert [task.id for task in store.task_list(None, None, 0, 100)] == ["w0", "w1", "w2", "w3", "w4", "o0", "o1"]
    assert statuses(store) == {"free": 5, "done": 2}


def test_a_task_that_is_not_there_is_said_so(store: Store) -> None:
    for ask in (
        lambda: store.task_finish("none", 1),
        lambda: store.task_renew("none", 1, lease_ms=LONG),
        lambda: store.task_release("none", 1),
        lambda: store.counter_add("hits", 1, Once(fence=Fence("none", 1))),
    ):
        with pytest.raises(TaskNotFound):
            ask()


def test_a_task_that_is_added_with_a_delay_waits(store: Store) -> None:
    store.task_add("work", [NewTask("x", "later")], delay_ms=LONG)
    store.task_add("work", [NewTask("x", "soon")], delay_ms=1)
    store.task_add("work", [NewTask("x", "now")])

    assert store.task_left("work") == 3
    claimed: list[str] = []
    deadline = time.monotonic() + 30
    while len(claimed) < 2 and time.monotonic() < deadline:
        claimed += [task.id for task in store.task_claim("work", "ann", lease_ms=LONG, count=9).tasks]
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
    with pytest.raises(LeaseLost):
        store.task_finish("a", task.generation)
    with pytest.raises(TaskNotFailed):
        store.task_retry("a")
    with pytest.raises(TaskNotFound):
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
    assert store.task_left("work") == 1200
    assert store.task_left("work", 1) == 1
    again = store.task_claim("work", "bob", lease_ms=LONG, count=3).tasks
    assert [found.id for found in again] == [found.id for found in claimed[:3]]
    assert statuses(store, "work")["free"] == 700


# Once


def writes(store: Store) -> list[tuple[Callable[[str], Any], Callable[[str], Any]]]:
    """Each kind of write with a key, and the same with other arguments."""
    return [
        (lambda key: store.counter_add("hits", 1, Once(key)), lambda key: store.counter_add("hits", 2, Once(key))),
        (
            lambda key: store.state_set("key", "a", once=Once(key)),
            lambda key: store.state_set("key", "b", once=Once(key)),
        ),
        (lambda key: store.state_unset("key", once=Once(key)), lambda key: store.state_unset("other", once=Once(key))),
        (
            lambda key: store.task_add("work", [NewTask("x")], Once(key)),
            lambda key: store.task_add("work", [NewTask("y")], Once(key)),
        ),
        (
            lambda key: store.task_claim("work", "ann", lease_ms=LONG, once=Once(key)),
            lambda key: store.task_claim("work", "bob", lease_ms=LONG, once=Once(key)),
        ),
    ]


@pytest.mark.parametrize("kind", range(5), ids=["counter add", "state set", "state unset", "task add", "task claim"])
def test_a_key_makes_a_write_happen_once_for_every_client(backend: Backend, kind: int) -> None:
    store, another = backend.open(), backend.open()
    store.task_add("work", [NewTask("x"), NewTask("x")])
    first = writes(store)[kind][0]("k")

    again = writes(another)[kind][0]("k")

    assert (first.replayed, again.replayed) == (False, True)
    assert again._replace(replayed=False) == first
    with pytest.raises(IdempotencyKeyReused):
        writes(another)[kind][1]("k")
    assert writes(store)[kind][0]("another key").replayed is False


def test_a_claim_whose_worker_has_no_chosen_name_is_repeated_under_any(backend: Backend) -> None:
    """The name that a worker has without one is another in every call."""
    store, another = backend.open(), backend.open()
    store.task_add("work", [NewTask("x"), NewTask("x")])
    first = store.task_claim("work", "run-1", lease_ms=LONG, once=Once("k"), is_named=False)

    again = another.task_claim("work", "run-2", lease_ms=LONG, once=Once("k"), is_named=False)

    assert (again.tasks, again.replayed) == (first.tasks, True)
    with pytest.raises(IdempotencyKeyReused):
        another.task_claim("work", "run-2", lease_ms=LONG, count=2, once=Once("k"), is_named=False)


def test_the_longest_names_of_any_script_fit_together(store: Store) -> None:
    """An index of PostgreSQL takes 2,700 bytes, compressed: names of characters that are long and differ."""
    characters = iter(random.Random(1).sample(range(0x20000, 0x2A6D0), 600))
    task_id, name, key = ("".join(map(chr, islice(characters, 200))) for _ in range(3))
    store.task_add("work", [NewTask("x", task_id)])
    once = Once(key, Fence(task_id, claim_one(store).generation))

    assert outcome(lambda: store.counter_add(name, 1, once).value) == 1

    assert store.counter_add(name, 1, once).replayed
    assert store.counter_get(name) == 1


def test_one_key_for_two_kinds_of_write_is_refused(store: Store) -> None:
    store.counter_add("hits", 1, Once("k"))

    with pytest.raises(IdempotencyKeyReused):
        store.state_set("hits", 1, once=Once("k"))


def test_a_refused_write_does_not_use_up_its_key(store: Store) -> None:
    store.state_set("key", "a")
    with pytest.raises(VersionConflict):
        store.state_set("key", "b", if_version=0, once=Once("k"))
    store.state_unset("key")

    assert store.state_set("key", "b", if_version=0, once=Once("k")).replayed is False


def test_a_fenced_write_happens_once_for_a_task_whichever_generation_does_it(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])
    first = store.counter_add("hits", 5, fence(claim_one(store, lease_ms=0)))
    second_claim = claim_one(store)

    again = store.counter_add("hits", 5, fence(second_claim))

    assert (again.value, again.replayed) == (first.value, True)
    assert store.counter_get("hits") == 5
    assert store.counter_add("other", 1, fence(second_claim)).replayed is False
    with pytest.raises(IdempotencyKeyReused):
        store.counter_add("hits", 6, fence(second_claim))
    apart = Once("second", Fence("a", second_claim.generation))
    assert store.counter_add("hits", 6, apart).value == 11


# Arguments


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "\x1b[2J", "\ud800", "x" * 201])
def test_a_name_that_could_harm_an_answer_is_refused(store: Store, name: str) -> None:
    for ask in (
        lambda: store.counter_add(name, 1),
        lambda: store.state_set(name, 1),
        lambda: store.task_add(name, [NewTask(1)]),
        lambda: store.task_add("work", [NewTask(1, name)]),
        lambda: store.task_claim("work", name, lease_ms=1),
        lambda: store.counter_add("hits", 1, Once(name)),
        lambda: store.counter_add("hits", 1, Once(fence=Fence(name, 1))),
        lambda: store.counter_get(name),
        lambda: store.state_get(name),
        lambda: store.task_renew(name, 1, lease_ms=1),
        lambda: store.task_finish(name, 1),
        lambda: store.task_release(name, 1),
        lambda: store.task_list(name, None, 0, 1),
    ):
        with pytest.raises(InvalidValues):
            ask()


def test_a_page_that_cannot_be_is_refused(store: Store) -> None:
    for ask in (
        lambda: store.counter_list("\ud800", 1),
        lambda: store.state_list("", "\ud800", 1),
        lambda: store.state_list("\ud800", "", 1),
        lambda: store.task_list(None, None, LARGEST + 1, 1),
    ):
        with pytest.raises(InvalidValues):
            ask()


def test_numbers_out_of_range_and_ids_given_twice_are_refused(store: Store) -> None:
    for ask in (
        lambda: store.counter_add("hits", LARGEST + 1),
        lambda: store.state_set("key", 1, if_version=-1),
        lambda: store.state_set("key", 1, expires_ms=-1),
        lambda: store.task_claim("work", "ann", lease_ms=-1),
        lambda: store.task_add("work", [NewTask(1, "a"), NewTask(1, "a")]),
    ):
        with pytest.raises(InvalidValues):
            ask()


def test_health_names_the_server_and_its_clock(backend: Backend) -> None:
    health = backend.open().health()

    assert health.server
    assert abs(health.clock_skew_ms) < 1000
    if backend.name != "memory":
        assert health.problems == []


# Many at once


def test_100_increments_by_10_clients_are_100(backend: Backend) -> None:
    each = scale(10, 1000)

    made = backend.together("count", 10, each)

    assert sorted(value for values in made for value in values) == list(range(1, 10 * each + 1))
    assert backend.open().counter_get("hits") == 10 * each


def test_calls_with_one_key_at_the_same_time_have_one_effect(backend: Backend) -> None:
    answers = backend.together("count_once", 5, "k")

    assert answers == [1] * 5
    assert backend.open().counter_get("hits") == 1


def test_concurrent_additions_of_tasks_lose_none(backend: Backend) -> None:
    backend.together("add_tasks", 8, 25)

    store = backend.open()
    assert statuses(store, "work") == {"free": 200}
    assert len(store.task_list("work", None, 0, 1000)) == 200


def test_one_task_added_by_many_is_there_once(backend: Backend) -> None:
    effects = backend.together("add_same_task", 4)

    assert sorted(effects) == ["created", *["unchanged"] * 3]
    assert statuses(backend.open(), "work") == {"free": 1}


def test_each_of_many_tasks_is_done_by_one_of_many_workers(backend: Backend) -> None:
    many = scale(80, 10_000)
    store = backend.open()
    store.task_add("work", [NewTask(n, str(n)) for n in range(many)])

    done = backend.together("drain", 8)

    assert sorted((task for tasks in done for task in tasks), key=int) == [str(n) for n in range(many)]
    assert statuses(store, "work") == {"done": many}
    assert store.counter_get("effects") == many


def test_lost_leases_neither_repeat_an_effect_nor_lose_a_task(backend: Backend) -> None:
    many = scale(20, 500)
    store = backend.open()
    store.task_add("work", [NewTask(n, str(n)) for n in range(many)])

    done = backend.together("drain_briefly", 4)

    assert sorted((task for tasks in done for task in tasks), key=int) == [str(n) for n in range(many)]
    assert [value for name, value in store.counter_list("effect-", 10_000)] == [1] * many


def test_compare_and_set_loops_lose_nothing(backend: Backend) -> None:
    store = backend.open()
    store.state_set("list", [])

    backend.together("append", 3, 10)

    assert sorted(store.state_get("list").value) == sorted(f"{n}-{i}" for n in range(3) for i in range(10))


def test_one_of_many_creates_a_value(backend: Backend) -> None:
    firsts = backend.together("create", 4)

    assert sorted(firsts) == [False] * 3 + [True]


def test_clients_that_create_the_store_at_once_all_succeed(shared: SharedBackend) -> None:
    made = shared.together("count", 8, 1)

    assert sorted(value for values in made for value in values) == list(range(1, 9))


# The helper


def test_update_tries_again_when_somebody_came_between(store: Store) -> None:
    store.state_set("key", 1)
    others = iter([10, 20])

    def change(value: Any) -> Any:
        for other in others:
            store.state_set("key", other)
            break
        return value + 1

    written = update(store, "key", change)

    assert store.state_get("key").value == 21
    assert written.version == store.state_get("key").version


def test_update_gives_up_with_the_conflict(store: Store) -> None:
    def change(_value: Any) -> Any:
        store.state_set("key", json.dumps(store.state_list("", "", 1) != []))
        return "never"

    with pytest.raises(VersionConflict):
        update(store, "key", change, attempts=3)
