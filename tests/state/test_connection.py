"""Which server a URL means, and mistakes that are permanent: names, TLS, ports, permissions."""

import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from sampletool.kit.contract.errors import InvalidValues, KeyNotFound
from sampletool.state.connect import open_store
from sampletool.state.errors import StateTooNew, StoreMisconfigured
from sampletool.state.protocol import NewTask
from sampletool.state.sqlite import SqliteStore
from sampletool.state.store import Store
from tests.state.conftest import valkey_url
from tests.state.support.outcomes import raises
from tests.state.support.servers import Server
from tests.state.support.store_client import make_policy
from tests.state.support.stores import SharedBackend
from tests.state.support.tcp_port import TcpPort


def opened(url: str, **options: Any) -> closing[Store]:
    return closing(open_store(url, None, make_policy(**options)))


# The name of a store


@pytest.mark.parametrize(("kind", "option"), [("postgres", "schema"), ("valkey", "prefix")])
def test_stores_with_different_names_share_nothing(
    make_backend: Callable[[str], SharedBackend], kind: str, option: str
) -> None:
    url = make_backend(kind).url
    separator = "&" if "?" in url else "?"
    with (
        opened(f"{url}{separator}{option}=projectA") as first,
        opened(f"{url}{separator}{option}=projectB") as second,
        opened(url) as unnamed,
    ):
        for number, store in enumerate((first, second, unnamed), 1):
            store.counter_add("hits", number)
            store.task_add("work", [NewTask(number, "a")])

        assert [store.counter_get("hits") for store in (first, second, unnamed)] == [1, 2, 3]
        assert [task.body for task in second.task_claim("work", "ann", lease_ms=1000).tasks] == [2]


@pytest.mark.parametrize("option", ["prefix=a&prefix=b", "prefix=", "prefix=a%20b", "prefix={x}"])
def test_a_wrong_name_of_a_store_is_refused(option: str) -> None:
    with raises(InvalidValues, match="prefix must be given once"):
        open_store(f"redis://h/0?{option}", None, make_policy())


@pytest.mark.parametrize(
    "url", ["redis://h/projectA", "rediss://u:p@h:1/projectA", "valkey://h/0/more?db=1"]
)
def test_a_path_that_is_not_the_number_of_a_database_is_refused(url: str) -> None:
    """The driver ignores it. Naive: two projects silently share one store."""
    with raises(InvalidValues, match="is not the number of a database"):
        open_store(url, None, make_policy())


@pytest.mark.parametrize("url", ["redis://h", "redis://h/", "redis://h/3", "unix:///run/a/b.sock"])
def test_a_number_of_a_database_or_no_path_is_taken(url: str) -> None:
    open_store(url, None, make_policy()).close()


# What can never work


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ("sslmode=bogus", "sslmode has an unknown value"),
        ("sslmode=require", "does not offer TLS"),
        ("target_session_attrs=bogus", "invalid value"),
    ],
)
def test_a_mistake_in_the_settings_of_postgres_fails_at_once_with_its_reason(
    server_of: Callable[[str], Server], options: str, reason: str
) -> None:
    """Naive: "cannot be reached", after all attempts, as if it could pass."""
    with (
        TcpPort(server_of("postgres")) as port,
        opened(f"postgresql://127.0.0.1:{port}/postgres?{options}") as store,
        raises(StoreMisconfigured, match=reason) as wrong,
    ):
        store.counter_get("hits")

    assert not wrong.value.describe()["retryable"]
    assert wrong.value.exit_status == 4


@pytest.mark.parametrize("port", ["99999", "abc", "0"])
def test_a_port_that_there_cannot_be_fails_at_once(port: str) -> None:
    pytest.importorskip("psycopg")
    with (
        opened(f"postgresql://127.0.0.1:{port}/d") as store,
        raises(StoreMisconfigured, match="port"),
    ):
        store.counter_get("hits")


def test_a_redis_server_without_tls_fails_at_once_with_its_reason() -> None:
    pytest.importorskip("redis")
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        opened(f"rediss://127.0.0.1:{listener.getsockname()[1]}/0") as store,
    ):

        def refuse() -> None:
            client, _address = listener.accept()
            with client:
                client.recv(65536)
                client.sendall(b"-ERR unknown command\r\n")

        thread = Thread(target=refuse)
        thread.start()

        with raises(StoreMisconfigured, match="does not speak TLS"):
            store.counter_get("hits")

        thread.join()


def test_a_database_that_redis_does_not_have_fails_at_once(
    server_of: Callable[[str], Server],
) -> None:
    url = f"unix://{server_of('valkey').running.socket}?db=9999"
    with (
        opened(url) as store,
        raises(StoreMisconfigured, match="no database with this number"),
    ):
        store.counter_get("hits")


# A newer schema


def test_a_connected_client_writes_nothing_after_the_store_was_upgraded(
    make_backend: Callable[[str], SharedBackend], tmp_path: Path
) -> None:
    """Naive: the version is compared only when a client connects."""
    from sampletool.state.postgres import SCHEMA_STEPS as POSTGRES_STEPS
    from sampletool.state.postgres import PostgresStore
    from sampletool.state.sqlite import SCHEMA_STEPS as SQLITE_STEPS

    more = "CREATE TABLE tool_more (name text)"
    path = tmp_path / "state.db"
    url = make_backend("postgres").url
    for old, new in (
        (SqliteStore(path, make_policy()), SqliteStore(path, make_policy(), (*SQLITE_STEPS, more))),
        (
            PostgresStore(url, make_policy()),
            PostgresStore(url, make_policy(), (*POSTGRES_STEPS, more)),
        ),
    ):
        old.counter_add("hits", 1)
        new.counter_add("hits", 1)

        with raises(StateTooNew):
            old.counter_add("hits", 1)

        assert new.counter_get("hits") == 2
        old.close()
        new.close()


# Reading


def test_reading_an_empty_postgres_creates_nothing(
    make_backend: Callable[[str], SharedBackend],
) -> None:
    import psycopg

    backend = make_backend("postgres")
    store = backend.open()

    assert store.counter_get("hits") == 0
    assert (store.counter_list("", 9), store.state_list("", "", 9)) == ([], [])
    assert (store.task_list(None, None, 0, 9), store.task_left("work")) == ([], 0)
    with raises(KeyNotFound):
        store.state_get("key")
    assert "do not exist yet" in store.health().settings["tables"]

    with psycopg.connect(backend.url) as admin:
        tables = admin.execute(
            "SELECT relname FROM pg_class WHERE relname LIKE 'tool_%' AND pg_table_is_visible(oid)"
        ).fetchall()
    assert tables == []
    assert store.counter_add("hits", 1).value == 1
    assert store.counter_get("hits") == 1


def test_a_replica_of_redis_can_be_read(private_server: Callable[[str], Server]) -> None:
    import redis

    server = private_server("valkey")
    url = f"unix://{server.running.socket}"
    with opened(url) as store:
        store.counter_add("hits", 1)
        store.task_add("work", [NewTask("x", "a")])
        store.task_claim("work", "ann", lease_ms=0)
    with redis.Redis.from_url(url) as admin:
        admin.replicaof("127.0.0.1", "1")

    with opened(url) as replica:
        assert replica.counter_get("hits") == 1
        assert [task.status for task in replica.task_list("work", None, 0, 9)] == ["expired"]
        assert replica.task_left("work") == 1


# Permissions


def test_a_redis_user_without_info_can_use_the_store_and_is_warned(
    private_server: Callable[[str], Server],
) -> None:
    import redis

    server = private_server("valkey")
    with redis.Redis.from_url(f"unix://{server.running.socket}") as admin:
        admin.execute_command("ACL SETUSER bob on >secret ~* +@all -info")
    warnings: list[str] = []

    with opened(f"unix://bob:secret@{server.running.socket}", warnings=warnings) as store:
        assert store.counter_add("hits", 1).value == 1
        assert "may not run INFO" in "; ".join(store.health().problems)

    assert "may not run INFO" in warnings[0]


# The clock of a server steps back


def test_a_claim_that_is_claimable_again_cannot_be_renewed_after_the_clock_stepped_back(
    server_of: Callable[[str], Server], worker_id: str
) -> None:
    """Another worker could claim it at the same time."""
    import redis

    url = valkey_url(server_of("valkey"), worker_id)
    from sampletool.state.errors import LeaseLost

    with opened(url) as store, redis.Redis.from_url(url) as admin:
        store.task_add("work", [NewTask("x", "a"), NewTask("x", "b")])
        (task,) = store.task_claim("work", "ann", lease_ms=0).tasks
        assert store.task_claim("work", "bob", lease_ms=60_000, count=1).tasks[0].id == "a"
        second = store.task_list("work", "claimed", 0, 9)[0]
        # What a clock that steps back leaves: the lease seems to last, but the task is free again.
        admin.zrem("{sampletool}:leased:work", "a")
        admin.zadd("{sampletool}:free:work", {"a": 1})

        with raises(LeaseLost):
            store.task_renew("a", second.generation, lease_ms=60_000)

        assert task.generation < second.generation
