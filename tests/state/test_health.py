"""Doctor reports each setting of a server that could lose data or that allows no changes."""

from collections.abc import Callable
from typing import Any

import pytest

from sampletool.state.connect import open_store
from sampletool.state.errors import StoreReadOnly
from sampletool.state.protocol import Health
from tests.state.support.outcomes import raises
from tests.state.support.servers import Server
from tests.state.support.store_client import make_policy


def health(url: str) -> Health:
    store = open_store(url, None, make_policy(patience=0.5))
    try:
        return store.health()
    finally:
        store.close()


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("appendfsync", "no", "appendfsync is no"),
        ("appendonly", "no", "no append-only file"),
        ("maxmemory-policy", "allkeys-lru", "may evict"),
        ("replicaof", "127.0.0.1 1", "replica"),
    ],
)
def test_an_unsafe_redis_is_not_approved(
    private_server: Callable[[str], Server], setting: str, value: str, problem: str
) -> None:
    import redis

    url = f"unix://{private_server('valkey').running.socket}"
    assert health(url).problems == []

    with redis.Redis.from_url(url) as admin:
        if setting == "replicaof":
            admin.replicaof(*value.split())
        else:
            admin.config_set(setting, value)

    assert problem in "; ".join(health(url).problems)


def test_a_replica_is_named_as_what_it_is(private_server: Callable[[str], Server]) -> None:
    import redis

    url = f"unix://{private_server('valkey').running.socket}"
    with redis.Redis.from_url(url) as admin:
        admin.replicaof("127.0.0.1", "1")
    store = open_store(url, None, make_policy(patience=0.5))

    with raises(StoreReadOnly) as refused:
        store.counter_add("hits", 1)

    assert "directory" not in refused.value.describe()["suggestion"]
    store.close()


def test_a_postgres_that_takes_no_changes_is_not_approved(
    make_backend: Callable[[str], Any],
) -> None:
    backend = make_backend("postgres")
    backend.open().counter_add("hits", 1)
    url = f"{backend.url}%20-cdefault_transaction_read_only%3Don"

    store = open_store(url, None, make_policy())

    with raises(StoreReadOnly):
        store.health()
    with raises(StoreReadOnly):
        store.counter_add("hits", 1)

    store.close()


def test_a_postgres_that_does_not_flush_is_not_approved(make_backend: Callable[[str], Any]) -> None:
    backend = make_backend("postgres")

    assert health(backend.url).problems == []
    assert health(f"{backend.url}%20-csynchronous_commit%3Doff").problems == [
        "synchronous_commit is off"
    ]
