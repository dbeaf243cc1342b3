"""sampletool/state/postgres.py: locks, encodings, and what a failed connection means."""

import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from threading import Thread
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.safety.errors import Interrupted
from sampletool.kit.safety.signals import Signals
from sampletool.state.connect import open_store
from sampletool.state.errors import StoreBusy, StoreUnavailable, StoreUnsafe
from sampletool.state.exchange import NoReply
from sampletool.state.postgres import SCHEMA_STEPS, PostgresStore, _in_driver_syntax
from sampletool.state.protocol import NewTask, Once
from tests.state.support.outcomes import outcome, raises
from tests.state.support.servers import Server
from tests.state.support.store_client import make_policy
from tests.state.support.stores import SharedBackend
from tests.state.support.waiting import wait_until

LATE, SOON = 30.0, 0.1
"""When a server ends the transaction of a paused client, as a multiple of the usual 2 s."""


@pytest.fixture
def backend(make_backend: Callable[[str], SharedBackend]) -> SharedBackend:
    return make_backend("postgres")


@pytest.fixture
def admin_url(server_of: Callable[[str], Server]) -> str:
    return (
        f"postgresql://test@/postgres?host={quote(server_of('postgres').running.socket, safe='')}"
    )


def test_who_needs_the_same_name_as_a_paused_client_may_give_up(backend: SharedBackend) -> None:
    store = backend.open(patience=0.2)
    store.counter_add("hits", 1)
    client = backend.start("stop_before_the_commit", 0, LATE)
    client.wait_until_ready()
    client.go()
    assert client.wait_until_stopped()

    with raises(StoreBusy):
        store.counter_add("hits", 1)

    client.resume()
    assert client.result() == 2
    assert store.counter_get("hits") == 2


def test_who_needs_the_same_name_as_a_paused_client_waits_until_its_transaction_is_ended(
    backend: SharedBackend,
) -> None:
    store = backend.open(patience=25.0)
    store.counter_add("hits", 1)
    client = backend.start("stop_before_the_commit", 0, SOON)
    client.wait_until_ready()
    client.go()
    assert client.wait_until_stopped()

    assert outcome(lambda: store.counter_add("hits", 1).value) == 2

    client.resume()
    assert client.result() == 3
    assert store.counter_get("hits") == 3


def test_a_name_that_stays_locked_is_lock_held_also_with_much_patience(
    backend: SharedBackend,
) -> None:
    import psycopg

    store = backend.open(patience=0.6, min_server_seconds=0.1)
    store.counter_add("hits", 1)
    with psycopg.connect(backend.url) as outsider:
        outsider.execute("UPDATE tool_counters SET value = value")

        assert outcome(lambda: store.counter_add("hits", 1)) == "LOCK_HELD"


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_server_that_cannot_hold_every_text_is_refused(admin_url: str, encoding: str) -> None:
    import psycopg

    name = f"e{secrets.token_hex(6)}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(
            f"CREATE DATABASE {name} ENCODING '{encoding}' "
            "TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        )
        store = open_store(admin_url.replace("/postgres?", f"/{name}?"), None, make_policy())

        with raises(StoreUnsafe, match=encoding):
            store.counter_add("hits", 1)

        store.close()
        admin.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_the_encoding_of_the_environment_does_not_matter(
    backend: SharedBackend, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    store = backend.open()

    assert outcome(lambda: store.state_set("語🙂", "ä", once=Once("鍵")).version) == 1

    assert store.state_set("語🙂", "ä", once=Once("鍵")).replayed
    assert store.state_get("語🙂").version == 1
    assert [value.key for value in store.state_list("語", "", 9)] == ["語🙂"]


def test_a_role_without_a_connection_left_is_not_a_wrong_password(admin_url: str) -> None:
    import psycopg

    name = f"r{secrets.token_hex(6)}"
    with psycopg.connect(admin_url, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {name} LOGIN CONNECTION LIMIT 0")
        url = admin_url.replace("test@", f"{name}@")

        with raises(StoreUnavailable, match="no free connection") as refused:
            open_store(url, None, make_policy(patience=0.0, min_server_seconds=0.1)).counter_add(
                "hits", 1
            )

        assert refused.value.describe()["retryable"]
        admin.execute(f"DROP ROLE {name}")


def test_a_database_that_is_not_there_is_said_at_once(admin_url: str) -> None:
    began = time.monotonic()

    with raises(InvalidValues, match="no database"):
        open_store(admin_url.replace("/postgres?", "/none?"), None, make_policy()).counter_add(
            "hits", 1
        )

    assert time.monotonic() - began < 8


def test_limits_end_with_the_transaction_so_that_a_pooler_may_share_connections(
    backend: SharedBackend,
) -> None:
    """Nothing is prepared on the server, as the next transaction may use another connection."""
    import psycopg

    store = backend.open()
    for _ in range(10):
        store.counter_add("hits", 1)

    with psycopg.connect(backend.url) as watcher:
        seen = watcher.execute(
            "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"
        ).fetchone()
    link = store._connection  # type: ignore[attr-defined]
    assert link.execute("SHOW statement_timeout").fetchone() == (seen or ["0"])[:1]
    assert link.execute("SELECT count(*) FROM pg_prepared_statements").fetchone() == (0,)


def test_a_claim_that_is_changed_while_its_holder_looks_is_looked_at_again(
    backend: SharedBackend,
) -> None:
    """The holder's renewal waits for the row, and must then see that the claim is another's."""
    import psycopg

    store = backend.open()
    store.task_add("work", [NewTask("x", "a")])
    (task,) = store.task_claim("work", "ann", lease_ms=60_000).tasks
    with psycopg.connect(backend.url) as outsider:
        outsider.execute("UPDATE tool_tasks SET generation = 2 WHERE id = 'a'")
        client = backend.start("renew", 0, task.id, task.generation)
        client.wait_until_ready()
        client.go()
        wait_until(lambda: waiting_for_locks(backend.url))
        outsider.commit()

    assert client.result() == "LEASE_LOST"


def test_a_signal_cancels_on_the_server_what_it_waits_for(backend: SharedBackend) -> None:
    """Else the server would go on waiting, and do it, when nobody wants it any more."""
    import psycopg

    backend.open().counter_add("hits", 1)
    terms = make_policy(patience=60.0)
    store = open_store(backend.url, None, terms)
    store.counter_get("hits")
    with psycopg.connect(backend.url) as outsider:
        outsider.execute("UPDATE tool_counters SET value = value")
        Thread(target=signal_when_it_waits, args=(terms.signals, backend.url)).start()

        with raises(Interrupted):
            store.counter_add("hits", 1)

        wait_until(lambda: waiting_for_locks(backend.url) == 0)
    store.close()


def test_one_caller_makes_the_schema_and_the_others_wait_and_look_again(
    backend: SharedBackend,
) -> None:
    import psycopg

    with psycopg.connect(backend.url) as first:
        first.execute("SELECT pg_advisory_xact_lock(%s, 0)", (0x746F6F6C,))
        client = backend.start("count", 0, 1)
        client.wait_until_ready()
        client.go()
        wait_until(lambda: waiting_for_locks(backend.url) or client.process.poll() is not None)
        assert client.process.poll() is None, "it has not waited"
        for step in SCHEMA_STEPS:
            first.execute(step.encode())
        first.execute("UPDATE tool_store SET version = %s", (len(SCHEMA_STEPS),))

    assert client.result() == [1]


def test_what_the_driver_logs_is_not_on_stderr() -> None:
    """It warns of lost connections. The response says what that means to the caller."""
    code = "import logging, sampletool.state.postgres; logging.getLogger('psycopg').warning('lost')"

    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert ran.stderr == b""


def test_a_statement_that_takes_too_long_does_not_go_on_without_its_caller(
    backend: SharedBackend,
) -> None:
    """Else the server would be busy with what nobody waits for any more."""
    import psycopg

    slow = PostgresStore(backend.url, make_policy(patience=0.0, min_server_seconds=0.1))
    slow.counter_add("hits", 1)

    with raises(StoreUnavailable, match="in time"):
        slow.look(lambda db: db.rows("SELECT pg_sleep(600)"))
    assert not slow.current_connection().closed, (
        "a client that has to give up closes the connection"
    )

    with psycopg.connect(backend.url, autocommit=True) as watcher:
        active = """
            SELECT count(*) FROM pg_stat_activity
            WHERE state = 'active' AND query LIKE '%pg_sleep(600)'
        """
        assert watcher.execute(active).fetchone() == (0,)
    slow.close()


def signal_when_it_waits(signals: Signals, url: str) -> None:
    wait_until(lambda: waiting_for_locks(url))
    signals.received = signal.SIGTERM


def waiting_for_locks(url: str) -> int:
    import psycopg

    asked = """
        SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
        WHERE NOT granted AND datname = %s
    """
    with psycopg.connect(url, autocommit=True) as watcher:
        found = watcher.execute(asked, (watcher.info.dbname,)).fetchone()
    return int(found[0]) if found else 0


def test_a_delay_is_a_value_and_no_other_statement(backend: SharedBackend) -> None:
    """A worker chooses a new delay for each failure, and the driver keeps every statement."""
    store = backend.open()

    def fail_once(delay_ms: int) -> int:
        store.task_add("work", [NewTask("x")], delay_ms=delay_ms)
        store.task_add("work", [NewTask("x")])
        (task,) = store.task_claim("work", "ann", lease_ms=60_000).tasks
        store.task_release(task.id, task.generation, delay_ms=delay_ms)
        return int(_in_driver_syntax.cache_info().currsize)

    assert fail_once(900_001) == fail_once(900_002)


@pytest.mark.parametrize(
    ("patience", "lock_ms", "statement_ms"),
    [(0, 1, 2500), (1, 1000, 2500), (3, 3000, 3500)],
)
def test_each_transaction_begins_with_limits(
    patience: float, lock_ms: int, statement_ms: int
) -> None:
    """The server gives up a statement half a second later than the caller, and says why."""
    store = PostgresStore("postgresql://h/d?schema=mine", make_policy(patience=patience))
    messages: list[bytes] = []
    link: Any = SimpleNamespace(execute=messages.append)

    store._begin(link, "SELECT 1")

    assert messages[0].decode().split(";") == [
        "BEGIN",
        f"SET LOCAL lock_timeout = {lock_ms}",
        f"SET LOCAL statement_timeout = {statement_ms}",
        "SET LOCAL idle_in_transaction_session_timeout = 2000",
        'SET LOCAL search_path = "mine"',
        "SELECT 1",
    ]


def test_the_driver_waits_a_second_longer_than_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the reason of the server arrives."""
    store = PostgresStore("postgresql://h/d", make_policy())
    moments: list[float] = []

    def connected(give_up_at: float) -> None:
        moments.append(give_up_at)
        raise TimeoutError

    monkeypatch.setattr(store, "_connected", connected)

    with raises(NoReply, match="it did not reply in time"):
        store._attempt(lambda _: None, 100.0, tables="required", is_repetition=False)

    assert moments == [101.0]


def test_a_first_write_creates_the_tables_and_a_second_store_uses_them(
    make_backend: Callable[[str], SharedBackend],
) -> None:
    backend = make_backend("postgres")

    values = [outcome(lambda: backend.open().counter_add("hits", 1).value) for _ in range(2)]

    assert values == [1, 2]
    assert outcome(lambda: backend.open().counter_get("hits")) == 2
