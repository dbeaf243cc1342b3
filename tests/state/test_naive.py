"""Naive implementations, run along one schedule: each breaks the contract of its verb.

Every naive step is real, on the real backend. The schedule lets two callers read before either
writes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.errors import VersionConflict
from sampletool.state.errors import LeaseLost
from sampletool.state.protocol import NewTask
from sampletool.state.store import Store
from tests.state.support.outcomes import raises
from tests.state.support.stores import Backend, SharedBackend

Steps = Iterator[None]


class Cells:
    """A place to read from and to write to, each an atomic step by itself."""

    def __init__(self, backend: Backend) -> None:
        self._memory: dict[str, str] = {}
        self._sqlite: Any = None
        self._postgres: Any = None
        self._redis: Any = None
        if backend.name == "sqlite":
            import sqlite3

            assert isinstance(backend, SharedBackend)
            path = Path(backend.url.removeprefix("sqlite://"))
            self._sqlite = sqlite3.connect(path.with_name("naive.db"), isolation_level=None)
            self._sqlite.execute("CREATE TABLE cells (name TEXT PRIMARY KEY, value TEXT)")
        elif backend.name == "postgres":
            import psycopg

            assert isinstance(backend, SharedBackend)
            self._postgres = psycopg.connect(backend.url, autocommit=True)
            self._postgres.execute("CREATE TABLE cells (name TEXT PRIMARY KEY, value TEXT)")
        elif backend.name == "valkey":
            import redis

            assert isinstance(backend, SharedBackend)
            self._redis = redis.Redis.from_url(backend.url)

    def get(self, name: str) -> Any:
        if self._sqlite:
            found = self._sqlite.execute(
                "SELECT value FROM cells WHERE name = ?", (name,)
            ).fetchone()
        elif self._postgres:
            found = self._postgres.execute(
                "SELECT value FROM cells WHERE name = %s", (name,)
            ).fetchone()
        else:
            text = self._redis.get(name) if self._redis else self._memory.get(name)
            found = None if text is None else (text,)
        return None if found is None else json.loads(found[0])

    def put(self, name: str, value: Any) -> None:
        text = json.dumps(value)
        if self._sqlite:
            self._sqlite.execute("REPLACE INTO cells VALUES (?, ?)", (name, text))
        elif self._postgres:
            self._postgres.execute(
                """
                INSERT INTO cells VALUES (%s, %s)
                ON CONFLICT (name) DO UPDATE SET value = excluded.value
                """,
                (name, text),
            )
        elif self._redis:
            self._redis.set(name, text)
        else:
            self._memory[name] = text

    def close(self) -> None:
        for connection in (self._sqlite, self._postgres, self._redis):
            if connection:
                connection.close()


@pytest.fixture
def cells(backend: Backend) -> Iterator[Cells]:
    made = Cells(backend)
    yield made
    made.close()


def both_read_before_either_writes(first: Steps, second: Steps) -> None:
    for steps in (first, second, first, second):
        next(steps, None)


def no_update_is_lost(acknowledged: int, value: int) -> bool:
    return value == acknowledged


def each_is_claimed_once(claims: list[str]) -> bool:
    return len(claims) == len(set(claims))


def test_reading_and_then_writing_loses_an_increment(cells: Cells, store: Store) -> None:
    def naive_add() -> Steps:
        value = cells.get("hits") or 0
        yield
        cells.put("hits", value + 1)

    both_read_before_either_writes(naive_add(), naive_add())
    for _ in range(2):
        store.counter_add("hits", 1)

    assert not no_update_is_lost(2, cells.get("hits"))
    assert no_update_is_lost(2, store.counter_get("hits"))


def test_selecting_and_then_updating_claims_a_task_twice(cells: Cells, store: Store) -> None:
    def naive_claim(claims: list[str]) -> Steps:
        free = cells.get("free")
        yield
        claims.append(free[0])
        cells.put("free", free[1:])

    cells.put("free", ["a", "b"])
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    naive: list[str] = []

    both_read_before_either_writes(naive_claim(naive), naive_claim(naive))
    ours = [
        task.id for _ in range(2) for task in store.task_claim("work", "ann", lease_ms=60_000).tasks
    ]

    assert not each_is_claimed_once(naive)
    assert each_is_claimed_once(ours)


def test_looking_and_then_setting_makes_two_leaders(cells: Cells, store: Store) -> None:
    def naive_lead(name: str, leaders: list[str]) -> Steps:
        is_free = cells.get("leader") is None
        yield
        if is_free:
            cells.put("leader", name)
            leaders.append(name)

    naive: list[str] = []

    both_read_before_either_writes(naive_lead("ann", naive), naive_lead("bob", naive))
    ours = [name for name in ("ann", "bob") if leads(store, name)]

    assert naive == ["ann", "bob"]
    assert ours == ["ann"]


def test_finishing_by_id_only_lets_a_late_worker_finish_the_work_of_another(
    cells: Cells, store: Store
) -> None:
    def naive_finish(worker: str) -> None:
        cells.put("a", {"status": "done", "by": worker})

    cells.put("a", {"status": "claimed", "by": "bob"})
    store.task_add("work", [NewTask("x", "a")])
    (late,) = store.task_claim("work", "ann", lease_ms=0).tasks
    store.task_claim("work", "bob", lease_ms=60_000)

    naive_finish("ann")
    with raises(LeaseLost):
        store.task_finish("a", late.generation)

    assert cells.get("a") == {"status": "done", "by": "ann"}
    assert [(task.status, task.claimed_by) for task in store.task_list(None, None, 0, 9)] == [
        ("claimed", "bob")
    ]


def leads(store: Store, name: str) -> bool:
    try:
        store.state_set("leader", name, if_version=0)
    except VersionConflict:
        return False
    return True
