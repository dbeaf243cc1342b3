"""A store that version 0.1 wrote, opened by this one: nothing is lost or done twice.

The files in written_by_0_1 are dumps of stores that the code of 0.1 filled, with leases and
idempotency keys that end in a hundred years."""

import json
import sqlite3
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import KeyNotFound
from sampletool.state.errors import LeaseLost
from sampletool.state.protocol import Fence, NewTask, Once
from sampletool.state.store import Store
from tests.state.support.outcomes import raises, statuses
from tests.state.support.stores import SharedBackend

_WRITTEN = Path(__file__).parent / "written_by_0_1"
LONG = 3_600_000


@pytest.fixture
def store(shared: SharedBackend) -> Store:
    if shared.name == "sqlite":
        with sqlite3.connect(shared.url.removeprefix("sqlite://")) as file:
            file.executescript((_WRITTEN / "sqlite.sql").read_text())
        file.close()
    elif shared.name == "postgres":
        import psycopg

        with psycopg.connect(shared.url) as server:
            server.execute((_WRITTEN / "postgres.sql").read_text().encode())
    else:
        import redis

        with redis.Redis.from_url(shared.url) as client:
            for line in (_WRITTEN / "valkey.jsonl").read_text().splitlines():
                client.execute_command(*json.loads(line))
    return shared.open()


def test_counters_and_values_are_there_with_their_versions(store: Store) -> None:
    assert store.counter_list("", 9) == [("größe", -7), ("hits", 5), ("sent", 1)]
    assert [(found.key, found.value, found.version) for found in store.state_list("", "", 9)] == [
        ("drafted", "text", 5),
        ("leader", "ann", 1),
        ("plan", {"step": [2, "語🙂"]}, 2),
    ]
    assert store.state_get("leader").expires_at is not None
    for gone in ("seat", "old"):
        with raises(KeyNotFound):
            store.state_get(gone)


def test_writing_goes_on_where_it_was(store: Store) -> None:
    assert store.counter_add("hits", 1).value == 6
    assert store.state_set("plan", "next", if_version=2).version == 3
    assert store.state_set("old", "again", if_version=0).version == 5, (
        "version 4 was used before it was removed"
    )


def test_tasks_have_the_status_that_they_had(store: Store) -> None:
    assert {task.id: task.status for task in store.task_list(None, None, 0, 99)} == {
        "done": "done",
        "failed": "failed",
        "used up": "failed",
        "expired": "expired",
        "claimed": "claimed",
        "delayed": "free",
        "again": "free",
        "free": "free",
        "letter": "free",
    }
    assert statuses(store, "work") == {
        "done": 1,
        "failed": 2,
        "expired": 1,
        "claimed": 1,
        "free": 3,
    }


def test_what_is_free_or_expired_is_claimed_in_the_order_of_adding(store: Store) -> None:
    claimed = store.task_claim("work", "bob", lease_ms=LONG, count=9).tasks

    assert [(task.id, task.generation, task.attempts) for task in claimed] == [
        ("expired", 2, 2),
        ("again", 2, 2),
        ("free", 1, 1),
    ]
    assert store.task_left("work") == 5
    with raises(LeaseLost):
        store.task_finish("expired", 1)
    assert store.task_finish("claimed", 1) == "updated"
    assert store.task_retry("failed") == store.task_retry("used up") == "updated"
    assert [task.id for task in store.task_claim("work", "bob", lease_ms=LONG, count=9).tasks] == [
        "failed",
        "used up",
    ]


def test_what_a_key_or_a_fence_remembers_is_not_done_again(store: Store) -> None:
    fence = Fence("claimed", 1)

    for again in (
        store.counter_add("hits", 2, Once("added")),
        store.state_set("drafted", "text", once=Once(fence=fence)),
        store.task_add("work", [NewTask("new", "free")], Once("put")),
    ):
        assert again.replayed

    assert store.counter_get("hits") == 5
    assert store.state_get("drafted").version == 5


def test_what_ended_is_cleaned_with_what_its_fences_remember(
    shared: SharedBackend, store: Store
) -> None:
    removed, _ = store.task_clean(0, ["done", "failed"])

    assert removed == 3
    assert statuses(store, "work") == {"expired": 1, "claimed": 1, "free": 3}
    store.task_add("new", [NewTask("x", "done")])
    (task,) = store.task_claim("new", "bob", lease_ms=LONG).tasks
    if shared.name != "valkey":  # where 0.1 wrote nowhere which fences a task has had
        assert (
            store.counter_add("sent", 1, Once(fence=Fence("done", task.generation))).replayed
            is False
        )
