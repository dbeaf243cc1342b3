"""Faults outside of the tool: dead or paused workers and servers, and broken connections."""

import signal
import socket
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from math import inf
from pathlib import Path
from threading import Timer
from typing import Any
from urllib.parse import quote

import pytest

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.safety.errors import Interrupted
from sampletool.kit.testing.scale import scale
from sampletool.state.connect import open_store
from sampletool.state.errors import (
    LeaseLost,
    StateTooNew,
    StoreAuthFailed,
    StoreUnavailable,
    StoreUnsafe,
)
from sampletool.state.postgres import SCHEMA_STEPS as POSTGRES_STEPS
from sampletool.state.postgres import PostgresStore
from sampletool.state.protocol import Claimed, Fence, NewTask, Once
from sampletool.state.sqlite import SCHEMA_STEPS as SQLITE_STEPS
from sampletool.state.sqlite import SqliteStore
from sampletool.state.store import Store
from tests.state.conftest import ThroughProxy, valkey_url
from tests.state.support.outcomes import outcome, raises
from tests.state.support.servers import Server
from tests.state.support.store_client import make_policy
from tests.state.support.stores import SharedBackend
from tests.state.support.waiting import wait_until

SOON_MS = 300
LONG = 3_600_000


def claim_when_expired(store: Store) -> Claimed:
    """Wait until the lease of the only task has expired, and claim it."""
    (task,) = wait_until(lambda: store.task_claim("work", "bob", lease_ms=LONG).tasks)
    return task


# Workers


def test_the_task_of_a_killed_worker_is_claimed_again(shared: SharedBackend) -> None:
    store = shared.open()
    store.task_add("work", [NewTask("x", "a")])
    worker = shared.start("stop_before_the_effect", 1, SOON_MS)
    worker.wait_until_ready()
    worker.go()
    worker.wait_until_stopped()
    worker.kill()

    task = claim_when_expired(store)

    assert (task.generation, task.attempts) == (2, 2)
    assert store.task_finish("a", task.generation) == "updated"


def test_a_worker_killed_between_effect_and_finish_leaves_one_effect(shared: SharedBackend) -> None:
    store = shared.open()
    store.task_add("work", [NewTask("x", "a")])
    worker = shared.start("stop_before_finishing", 1, SOON_MS)
    worker.wait_until_ready()
    worker.go()
    worker.wait_until_stopped()
    worker.kill()

    task = claim_when_expired(store)
    again = store.counter_add("effects", 1, Once(fence=Fence("a", task.generation)))

    assert (again.value, again.replayed) == (1, True)
    assert store.counter_get("effects") == 1


def test_a_worker_paused_past_its_lease_is_fenced_out(shared: SharedBackend) -> None:
    store = shared.open()
    store.task_add("work", [NewTask("x", "a")])
    worker = shared.start("stop_before_the_effect", 1, SOON_MS)
    worker.wait_until_ready()
    worker.go()
    worker.wait_until_stopped()
    task = claim_when_expired(store)

    worker.resume()

    assert worker.result() == "LEASE_LOST"
    assert store.counter_get("effects") == 0
    assert store.task_finish("a", task.generation) == "updated"


def test_a_clock_that_is_an_hour_off_changes_no_lease(
    shared: SharedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = shared.open()
    real_time = time.time
    store.task_add("work", [NewTask("x", "a")])
    (task,) = store.task_claim("work", "ann", lease_ms=60_000).tasks

    monkeypatch.setattr(time, "time", lambda: real_time() + 3600)
    claimed_by_bob = shared.open().task_claim("work", "bob", lease_ms=60_000).tasks
    renewed_until = store.task_renew("a", task.generation, lease_ms=60_000)
    health = shared.open().health()

    assert claimed_by_bob == []
    assert datetime.fromisoformat(renewed_until).timestamp() < real_time() + 600
    assert abs(health.clock_skew_ms + 3_600_000) < 60_000


def test_a_fork_opens_a_connection_of_its_own(shared: SharedBackend) -> None:
    """The fork happens in a process without threads. This process has some, so it must not fork."""
    ((values, opened),) = shared.together("fork_and_count", 1)

    assert values == [1, 2, 3]
    assert opened == 1


# Time


def test_a_lease_of_0_milliseconds_expires_at_once(shared: SharedBackend) -> None:
    """In some of the turns, the lease expires within the millisecond of the claim."""
    store = shared.open()
    store.task_add("work", [NewTask("x", "a")])

    turns = 500 if shared.name == "valkey" else 40
    for _ in range(turns):
        (task,) = store.task_claim("work", "ann", lease_ms=0).tasks
        with raises(LeaseLost):
            store.task_renew("a", task.generation, lease_ms=LONG)


def test_an_idempotency_key_is_remembered_for_a_day_and_then_forgotten(
    shared: SharedBackend,
) -> None:
    store = shared.open()
    remembered = RememberedKeys(shared)
    store.counter_add("hits", 1, Once("k"))
    assert 23.9 < remembered.hours()["key:k"] <= 24

    remembered.expire()
    added = store.counter_add("hits", 1, Once("k"))

    assert added.replayed is False
    assert store.counter_get("hits") == 2
    assert remembered.hours()["key:k"] > 23.9


def test_a_fenced_write_is_remembered_as_long_as_its_task(shared: SharedBackend) -> None:
    store = shared.open()
    store.task_add("work", [NewTask("x", "a")])
    (task,) = store.task_claim("work", "ann", lease_ms=LONG).tasks

    store.counter_add("hits", 1, Once(fence=Fence("a", task.generation)))

    assert list(RememberedKeys(shared).hours().values()) == [inf]


def test_an_expired_key_is_removed_by_the_next_write(shared: SharedBackend) -> None:
    store = shared.open()
    remembered = RememberedKeys(shared)
    store.counter_add("hits", 1, Once("k"))
    remembered.expire()

    store.counter_add("hits", 1, Once("another"))

    assert list(remembered.hours()) == ["key:another"]


class RememberedKeys:
    """The idempotency keys that a store remembers, read and changed without the store."""

    def __init__(self, backend: SharedBackend) -> None:
        self._backend = backend

    def hours(self) -> dict[str, float]:
        """Return for how many more hours each key is remembered."""
        if self._backend.name == "valkey":
            ends_ms = self._in_redis(lambda client, name: client.pexpiretime(name))
        else:
            ends_ms = dict(self._sql("SELECT key, coalesce(expires_at, -1) FROM tool_once"))
        hours = {}
        for key, end_ms in ends_ms.items():
            hours[key] = inf
            if end_ms >= 0:
                hours[key] = end_ms / 3_600_000 - time.time() / 3600
        return hours

    def expire(self) -> None:
        """Let all keys expire that are not remembered permanently."""
        if self._backend.name == "valkey":
            self._in_redis(lambda client, name: client.pexpire(name, 1))
            wait_until(lambda: self.hours() == {})
        else:
            self._sql(
                "UPDATE tool_once SET expires_at = 1 WHERE expires_at IS NOT NULL RETURNING 1"
            )

    def _in_redis(self, ask: Callable[[Any, str], Any]) -> dict[str, Any]:
        import redis

        start = "{sampletool}:once:"
        with redis.Redis.from_url(self._backend.url, decode_responses=True) as client:
            return {
                name.removeprefix(start): ask(client, name) for name in client.keys(f"{start}*")
            }

    def _sql(self, statement: str) -> list[Any]:
        if self._backend.name == "sqlite":
            with closing(
                sqlite3.connect(self._backend.url.removeprefix("sqlite://"), isolation_level=None)
            ) as db:
                return db.execute(statement).fetchall()
        import psycopg

        with psycopg.connect(self._backend.url, autocommit=True) as server:
            return server.execute(statement.encode()).fetchall()


# Connections


def test_after_a_lost_reply_a_write_with_a_key_is_repeated(
    through_proxy: ThroughProxy,
) -> None:
    store, direct, proxy = through_proxy("cut reply")

    added = outcome(lambda: store.counter_add("hits", 1, Once("k"))._asdict())

    assert proxy.struck.is_set()
    assert added == {"value": 1, "effect": "created", "replayed": True}
    assert direct.counter_get("hits") == 1


def test_after_a_lost_reply_a_write_without_a_key_fails_and_is_not_repeated(
    through_proxy: ThroughProxy,
) -> None:
    store, direct, proxy = through_proxy("cut reply")

    with raises(StoreUnavailable) as unknown:
        store.counter_add("hits", 1)

    assert proxy.struck.is_set()
    assert unknown.value.context["outcome"] == "unknown"
    assert not unknown.value.describe()["retryable"]
    assert direct.counter_get("hits") == 1


def test_a_request_that_was_cut_off_happens_once(through_proxy: ThroughProxy, kind: str) -> None:
    """PostgreSQL has certainly not committed. Redis may have obeyed, so it needs a key."""
    store, direct, proxy = through_proxy("cut request")

    added = store.counter_add("hits", 1, Once("k") if kind == "valkey" else Once())

    assert proxy.struck.is_set()
    assert (added.value, added.replayed) == (1, False)
    assert direct.counter_get("hits") == 1


# Servers


def test_a_server_killed_under_load_keeps_every_acknowledged_write(
    kind: str, breakable: Callable[[str], tuple[Server, str]]
) -> None:
    server, url = breakable(kind)
    backend = SharedBackend(kind, url)
    store = backend.open()
    count = scale(60, 2000)
    total = 3 * count
    clients = [backend.start("count_with_keys", number, count) for number in range(3)]
    for client in clients:
        client.wait_until_ready()
        client.go()

    for reached in range(10, total, max(10, total // 2)):
        wait_until(lambda: store.counter_get("hits") >= reached)  # noqa: B023  at once
        server.kill()

    assert [client.result() for client in clients] == [count, count, count]
    assert store.counter_get("hits") == total
    backend.close()


def test_a_write_that_never_reached_a_dead_server_can_be_retried(
    kind: str, breakable: Callable[[str], tuple[Server, str]]
) -> None:
    """This needs no key: the write has certainly not happened."""
    server, url = breakable(kind)
    store = open_store(url, None, make_policy(patience=0.1, min_server_seconds=0.1))
    store.counter_add("hits", 1)

    with server.killed(), raises(StoreUnavailable) as down:
        store.counter_add("hits", 1)

    assert down.value.describe()["retryable"]
    assert store.counter_add("hits", 1).value == 2
    store.close()


def test_a_verb_fails_in_time_if_the_server_does_not_reply(
    kind: str, breakable: Callable[[str], tuple[Server, str]]
) -> None:
    server, url = breakable(kind)
    store = open_store(url, None, make_policy(patience=0.1, min_server_seconds=0.1))
    store.counter_add("hits", 1)
    server.pause()
    started_at = time.monotonic()

    with raises(StoreUnavailable):
        store.counter_get("hits")

    assert time.monotonic() - started_at < 10
    server.resume()
    store.close()


@pytest.mark.parametrize("is_connected", [True, False], ids=["connected", "connecting"])
def test_a_signal_ends_the_wait_for_a_server_that_does_not_reply(
    kind: str, is_connected: bool, breakable: Callable[[str], tuple[Server, str]]
) -> None:
    server, url = breakable(kind)
    policy = make_policy()
    store = open_store(url, None, policy)
    if is_connected:
        store.counter_add("hits", 1)
    server.pause()
    policy.signals.listen()
    Timer(0.3, lambda: policy.signals.receive(signal.SIGTERM)).start()
    started_at = time.monotonic()

    with raises(Interrupted):
        store.counter_add("hits", 1)

    assert time.monotonic() - started_at < 5
    server.resume()
    store.close()
    policy.signals.close()


def test_a_verb_fails_in_time_if_no_server_accepts_the_connection(kind: str) -> None:
    """The library of PostgreSQL waits for a connection for at least 2 s, whatever the limit is."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        url = f"redis://:sekret@{address}/0"
        if kind == "postgres":
            url = f"postgresql://u:sekret@{address}/db"
        store = open_store(url, None, make_policy(patience=0.1, min_server_seconds=0.1))
        started_at = time.monotonic()

        with raises(StoreUnavailable) as unreachable:
            store.counter_add("hits", 1)

    assert time.monotonic() - started_at < 10
    assert unreachable.value.describe()["retryable"]
    assert "sekret" not in str(unreachable.value.describe())


def test_a_refused_login_is_an_error_of_its_own_that_shows_no_password(
    kind: str, server_of: Callable[[str], Server]
) -> None:
    server = server_of(kind)
    host = quote(server.running.socket, safe="")
    if kind == "postgres":
        url = f"postgresql://stranger:sekret@/postgres?host={host}"
    else:
        url = f"unix://stranger:sekret@{server.running.socket}"

    with raises(StoreAuthFailed) as refused:
        open_store(url, None, make_policy()).counter_add("hits", 1)

    assert "sekret" not in str(refused.value.describe())


def test_a_server_that_may_evict_is_refused(private_server: Callable[[str], Server]) -> None:
    import redis

    server = private_server("valkey")
    warnings: list[str] = []
    with redis.Redis.from_url(f"unix://{server.running.socket}") as admin:
        admin.config_set("maxmemory-policy", "allkeys-lru")
        unsafe = open_store(server.url, None, make_policy())
        with raises(StoreUnsafe):
            unsafe.counter_add("hits", 1)
        unsafe.close()
        admin.config_set("maxmemory-policy", "noeviction")
        admin.config_set("appendonly", "no")

    store = open_store(server.url, None, make_policy(warnings=warnings))
    store.counter_add("hits", 1)

    assert [line.partition(":")[0] for line in warnings] == ["STORE_NOT_DURABLE"]
    assert store.health().problems
    store.close()


# Schemas


def test_an_older_store_is_upgraded_and_a_newer_one_is_refused(
    make_backend: Callable[[str], SharedBackend], tmp_path: Path
) -> None:
    new_step = "CREATE TABLE tool_more (name text)"
    path = tmp_path / "state.db"
    old_sqlite = SqliteStore(path, make_policy())
    new_sqlite = SqliteStore(path, make_policy(), schema_steps=(*SQLITE_STEPS, new_step))
    url = make_backend("postgres").url
    old_postgres = PostgresStore(url, make_policy())
    new_postgres = PostgresStore(url, make_policy(), (*POSTGRES_STEPS, new_step))

    for old, new in ((old_sqlite, new_sqlite), (old_postgres, new_postgres)):
        old.counter_add("hits", 1)
        old.close()

        assert new.counter_get("hits") == 1
        assert new.counter_add("hits", 1).value == 2
        assert new.look(lambda db: db.rows("SELECT * FROM tool_more")) == []
        new.close()

        with raises(StateTooNew):
            old.counter_add("hits", 1)
        with raises(StateTooNew):
            old.counter_get("hits")
        old.close()


def test_a_newer_redis_store_is_refused(server_of: Callable[[str], Server], worker_id: str) -> None:
    import redis

    url = valkey_url(server_of("valkey"), worker_id)
    with redis.Redis.from_url(url) as client:
        client.set("{sampletool}:schema", 99)
    store = open_store(url, None, make_policy())

    with raises(StateTooNew):
        store.counter_get("hits")

    store.close()


def test_version_0_1_refuses_a_redis_store_that_this_one_has_used(
    server_of: Callable[[str], Server], worker_id: str
) -> None:
    """Version 0.1 would leave a task that it finishes late in the queue, where others claim it."""
    import redis

    url = valkey_url(server_of("valkey"), worker_id)
    with redis.Redis.from_url(url) as client:
        client.set("{sampletool}:schema", 1)
        for is_dry_run, schema in ((True, b"1"), (False, b"3")):
            store = open_store(url, None, make_policy(dry_run=is_dry_run))

            store.counter_add("hits", 1)

            assert client.get("{sampletool}:schema") == schema
            store.close()


# Dry runs


def test_a_dry_run_returns_the_real_results_and_changes_nothing(shared: SharedBackend) -> None:
    store = shared.open()
    store.state_set("key", "a")
    store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
    (held,) = store.task_claim("work", "ann", lease_ms=LONG).tasks

    def dry_run() -> Store:
        return shared.open(dry_run=True)

    one_dry_run = dry_run()
    assert one_dry_run.counter_add("hits", 3).value == 3
    assert one_dry_run.state_set("key", "b", if_version=1).version == 2
    with raises(ToolError):
        dry_run().state_set("key", "b", if_version=7)
    assert dry_run().state_unset("key").effect == "deleted"
    assert dry_run().task_add("work", [NewTask("y", "c")]).effects == [("c", "created")]
    claimed = dry_run().task_claim("work", "ann", lease_ms=1).tasks
    assert [task.id for task in claimed] == ["b"]
    assert dry_run().task_finish("a", held.generation) == "updated"
    shared.close()

    after = shared.open()
    assert after.counter_list("", 9) == []
    assert (after.state_get("key").value, after.state_get("key").version) == ("a", 1)
    assert [task.status for task in after.task_list(None, None, 0, 9)] == ["claimed", "free"]
