"""What a key or a fence keeps from happening twice, on every backend."""

import random
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from sampletool.kit.contract.errors import VersionConflict
from sampletool.state.errors import FencedWriteRepeated, IdempotencyKeyReused, LeaseLost
from sampletool.state.protocol import Fence, NewTask, Once
from sampletool.state.store import Store
from tests.state.support.claims import LONG, claim_one, fence
from tests.state.support.outcomes import outcome, raises
from tests.state.support.stores import Backend


def write(store: Store, kind: str, key: str, value: int = 1) -> Any:
    """Of each kind one with a key; with another value its arguments are others."""
    writes: dict[str, Callable[[Once], Any]] = {
        "counter add": lambda once: store.counter_add("hits", value, once),
        "state set": lambda once: store.state_set("key", value, once=once),
        "state unset": lambda once: store.state_unset(f"key {value}", once=once),
        "task add": lambda once: store.task_add("work", [NewTask(value)], once),
        "task claim": lambda once: store.task_claim(
            "work", f"ann {value}", lease_ms=LONG, once=once
        ),
    }
    return writes[kind](Once(key))


@pytest.mark.parametrize(
    "kind", ["counter add", "state set", "state unset", "task add", "task claim"]
)
def test_a_key_makes_a_write_happen_once_for_every_client(backend: Backend, kind: str) -> None:
    store, another = backend.open(), backend.open()
    store.task_add("work", [NewTask("x"), NewTask("x")])
    first = write(store, kind, "k")

    again = write(another, kind, "k")

    assert (first.replayed, again.replayed) == (False, True)
    assert again._replace(replayed=False) == first
    assert outcome(lambda: write(another, kind, "k", 2)) == "IDEMPOTENCY_KEY_REUSED"
    assert write(store, kind, "another key").replayed is False


def test_a_claim_whose_worker_has_no_chosen_name_is_repeated_under_any(backend: Backend) -> None:
    """The name that a worker has without one is another in every call."""
    store, another = backend.open(), backend.open()
    store.task_add("work", [NewTask("x"), NewTask("x")])
    first = store.task_claim("work", "run-1", lease_ms=LONG, once=Once("k"), is_named=False)

    again = another.task_claim("work", "run-2", lease_ms=LONG, once=Once("k"), is_named=False)

    assert (again.tasks, again.replayed) == (first.tasks, True)
    with raises(IdempotencyKeyReused):
        another.task_claim("work", "run-2", lease_ms=LONG, count=2, once=Once("k"), is_named=False)


@pytest.mark.parametrize("options", [{"delay_ms": 1}, {"max_attempts": 0}, {"max_attempts": 1}])
def test_a_key_that_added_tasks_is_refused_with_other_options(
    store: Store, options: dict[str, int]
) -> None:
    store.task_add("work", [NewTask("x")], Once("k"))

    again = outcome(lambda: store.task_add("work", [NewTask("x")], Once("k"), **options))

    assert again == "IDEMPOTENCY_KEY_REUSED"
    assert store.task_left("work") == 1


@pytest.mark.parametrize(
    "options",
    [{"lease_ms": LONG + 1}, {"count": 2}, {"max_attempts": 1}, {"finish": [Fence("a", 1)]}],
)
def test_a_key_that_claimed_tasks_is_refused_with_other_options(
    store: Store, options: dict[str, Any]
) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    store.task_claim("work", "ann", lease_ms=LONG, once=Once("k"))

    other = {"lease_ms": LONG, **options}
    again = outcome(lambda: store.task_claim("work", "ann", once=Once("k"), **other))

    assert again == "IDEMPOTENCY_KEY_REUSED"
    assert [task.status for task in store.task_list("work", None, 0, 9)] == ["claimed", "free"]


def test_the_longest_names_of_any_script_fit_together(store: Store) -> None:
    """A row of an index of PostgreSQL has at most 2,700 bytes. These names hardly compress."""
    characters = iter(random.Random(1).sample(range(0x20000, 0x2A6D0), 600))
    task_id, name, key = ("".join(map(chr, islice(characters, 200))) for _ in range(3))
    store.task_add("work", [NewTask("x", task_id)])
    once = Once(key, Fence(task_id, claim_one(store).generation))

    assert outcome(lambda: store.counter_add(name, 1, once).value) == 1

    assert store.counter_add(name, 1, once).replayed
    assert store.counter_get(name) == 1


def test_one_key_for_two_kinds_of_write_is_refused(store: Store) -> None:
    store.counter_add("hits", 1, Once("k"))

    with raises(IdempotencyKeyReused):
        store.state_set("hits", 1, once=Once("k"))


def test_a_refused_write_does_not_use_up_its_key(store: Store) -> None:
    store.state_set("key", "a")
    with raises(VersionConflict):
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
    apart = Once("second", Fence("a", second_claim.generation))
    assert store.counter_add("hits", 6, apart).value == 11


def test_a_second_execution_that_writes_something_else_gets_the_first_result(store: Store) -> None:
    """What an agent writes differs each time. Naive: an error about a key that nobody gave."""
    store.task_add("work", [NewTask("x", "a")])
    first = store.state_set("result", "first text", once=fence(claim_one(store, lease_ms=0)))

    again = store.state_set("result", "another text", once=fence(claim_one(store)))

    assert (again.version, again.replayed) == (first.version, True)
    assert store.state_get("result").value == "first text"


def test_one_claim_that_makes_a_change_with_other_arguments_is_refused_by_its_name(
    store: Store,
) -> None:
    store.task_add("work", [NewTask("x", "a")])
    claim = fence(claim_one(store))
    store.counter_add("hits", 5, claim)

    with raises(FencedWriteRepeated, match="a:1 has already made this change"):
        store.counter_add("hits", 6, claim)

    assert store.counter_get("hits") == 5


def test_a_claim_that_has_ended_is_refused_also_for_a_write_that_it_has_made(store: Store) -> None:
    """Only the driver's own repetition of a call gets the result: see test_outcome.py."""
    store.task_add("work", [NewTask("x", "a")])
    claimed = claim_one(store)
    store.counter_add("hits", 5, fence(claimed))
    store.task_release("a", claimed.generation)
    claim_one(store)

    with raises(LeaseLost):
        store.counter_add("hits", 5, fence(claimed))


# A worker's claim whose reply was lost


def test_a_repeated_request_gets_the_tasks_that_it_has_claimed(backend: Backend) -> None:
    store, another = backend.open(), backend.open()
    store.task_add("work", [NewTask(number, f"t{number}") for number in range(4)])
    first = store.task_claim("work", "ann", lease_ms=LONG, count=2, request_id="r1").tasks
    another.task_claim("work", "bob", lease_ms=LONG, request_id="r2")

    again = store.task_claim(
        "work", "ann", lease_ms=LONG, count=2, request_id="r1", is_repetition=True
    ).tasks

    assert again == first
    assert [task.status for task in store.task_list("work", None, 0, 9)] == ["claimed"] * 3 + [
        "free"
    ]


def test_a_repeated_request_that_never_arrived_claims_now(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a")])

    claimed = store.task_claim(
        "work", "ann", lease_ms=LONG, request_id="r1", is_repetition=True
    ).tasks

    assert [task.id for task in claimed] == ["a"]


def test_a_repeated_request_does_not_get_what_it_no_longer_holds(store: Store) -> None:
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    (first,) = store.task_claim("work", "ann", lease_ms=LONG, request_id="r1").tasks
    store.task_release("a", first.generation, delay_ms=LONG)

    again = store.task_claim(
        "work", "ann", lease_ms=LONG, request_id="r1", is_repetition=True
    ).tasks

    assert [task.id for task in again] == ["b"]
