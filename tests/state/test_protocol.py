"""The contract of protocol.py and store.py, on every backend: counters, values, refusals."""

from collections.abc import Callable
from typing import Any

import pytest

from sampletool.kit.contract.errors import KeyNotFound, VersionConflict
from sampletool.kit.testing.scale import scale
from sampletool.state.errors import CounterRange
from sampletool.state.protocol import MAX_INTEGER, Fence, NewTask, Once
from sampletool.state.store import Store
from tests.state.support.claims import LONG
from tests.state.support.outcomes import outcome, raises
from tests.state.support.stores import Backend


def test_an_addition_answers_the_value_it_made(store: Store) -> None:
    assert store.counter_get("hits") == 0
    assert store.counter_add("hits", 1).effect == "created"

    added = store.counter_add("hits", 5)

    assert (added.value, added.effect, added.replayed) == (6, "updated", False)
    assert store.counter_add("hits", -10).value == -4
    assert store.counter_get("hits") == -4


@pytest.mark.parametrize("sign", [1, -1])
def test_a_counter_stays_within_what_json_carries_exactly(store: Store, sign: int) -> None:
    assert (
        outcome(lambda: store.counter_add("hits", sign * MAX_INTEGER).value) == sign * MAX_INTEGER
    )

    for amount in (1, MAX_INTEGER):
        with raises(CounterRange):
            store.counter_add("hits", sign * amount)

    assert store.counter_get("hits") == sign * MAX_INTEGER
    assert store.counter_add("hits", -sign).value == sign * (MAX_INTEGER - 1)


def test_counters_are_listed_in_pages_that_miss_nothing(store: Store) -> None:
    names = sorted(["a", "b", "ä", "Z", "a b", "🙂", "a:b", "10", "9"])
    for name in names:
        store.counter_add(name, 1)

    pages, after = [], ""
    while page := store.counter_list(after, 2):
        pages += [name for name, _ in page]
        after = pages[-1]

    assert pages == names


TEXTS = ["", "\0", "a\0b", "\ud800", "🙂", "line\nbreak", "x" * 1024 * 1024]
OTHERS: list[Any] = [None, 0, False, 2**53 - 1, 1.5, [], {"a": [1, {}]}]


@pytest.mark.parametrize("value", [*TEXTS, *OTHERS], ids=lambda value: repr(value)[:12])
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
        with raises(VersionConflict) as refused:
            change()
        assert refused.value.context == {"key": "key", "expected": 1, "actual": 2}

    assert store.state_get("key").value == "theirs"
    assert store.state_set("key", "late", if_version=2).version == 3


def test_version_0_means_only_if_there_is_none(store: Store) -> None:
    assert store.state_set("key", "first", if_version=0).effect == "created"

    with raises(VersionConflict):
        store.state_set("key", "second", if_version=0)

    store.state_unset("key")
    assert store.state_set("key", "third", if_version=0).effect == "created"
    assert store.state_unset("missing", if_version=0).effect == "unchanged"


def test_an_expired_value_is_gone(store: Store) -> None:
    store.state_set("key", "short", expires_ms=0)

    with raises(KeyNotFound):
        store.state_get("key")
    with raises(VersionConflict):
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
    with raises(KeyNotFound):
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


@pytest.mark.parametrize("name", ["", "a\nb", "a\0b", "\x1b[2J", "\ud800", "x" * 201])
def test_a_name_that_could_harm_an_answer_is_refused(store: Store, name: str) -> None:
    asks = (
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
    )
    assert {outcome(ask) for ask in asks} == {"VALIDATION_ERROR"}


def test_a_page_that_cannot_be_is_refused(store: Store) -> None:
    asks = (
        lambda: store.counter_list("\ud800", 1),
        lambda: store.state_list("", "\ud800", 1),
        lambda: store.state_list("\ud800", "", 1),
        lambda: store.task_list(None, None, MAX_INTEGER + 1, 1),
    )
    assert {outcome(ask) for ask in asks} == {"VALIDATION_ERROR"}


def test_numbers_out_of_range_and_ids_given_twice_are_refused(store: Store) -> None:
    asks = (
        lambda: store.counter_add("hits", MAX_INTEGER + 1),
        lambda: store.state_set("key", 1, if_version=-1),
        lambda: store.state_set("key", 1, expires_ms=-1),
        lambda: store.task_claim("work", "ann", lease_ms=-1),
        lambda: store.task_add("work", [NewTask(1, "a"), NewTask(1, "a")]),
    )
    assert {outcome(ask) for ask in asks} == {"VALIDATION_ERROR"}


def test_health_names_the_server_and_its_clock(backend: Backend) -> None:
    health = backend.open().health()

    assert health.server
    assert abs(health.clock_skew_ms) < 1000
    if backend.name != "memory":
        assert health.problems == []
