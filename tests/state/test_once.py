"""What a key or a fence keeps from happening twice, on every backend."""

import random
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from sampletool.kit.contract.errors import VersionConflict
from sampletool.state.errors import IdempotencyKeyReused
from sampletool.state.protocol import Fence, NewTask, Once
from sampletool.state.store import Store
from tests.state.support.claims import LONG, claim_one, fence
from tests.state.support.outcomes import outcome
from tests.state.support.stores import Backend


def write(store: Store, kind: str, key: str, value: int = 1) -> Any:
    """Of each kind one with a key; with another value its arguments are others."""
    writes: dict[str, Callable[[Once], Any]] = {
        "counter add": lambda once: store.counter_add("hits", value, once),
        "state set": lambda once: store.state_set("key", value, once=once),
        "state unset": lambda once: store.state_unset(f"key {value}", once=once),
        "task add": lambda once: store.task_add("work", [NewTask(value)], once),
        "task claim": lambda once: store.task_claim("work", f"ann {value}", lease_ms=LONG, once=once),
    }
    return writes[kind](Once(key))


@pytest.mark.parametrize("kind", ["counter add", "state set", "state unset", "task add", "task claim"])
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
