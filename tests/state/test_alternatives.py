"""Every member of an alternation has an effect: errors of databases, schemes, options, verbs."""

import asyncio
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sampletool.kit.context import Context
from sampletool.kit.contract.errors import InvalidValues, ToolError
from sampletool.kit.contract.file_errors import IoFailure, NoSpace, PermissionDenied, ReadOnly
from sampletool.kit.safety.errors import LockTimeout
from sampletool.kit.safety.holder import Owners
from sampletool.kit.safety.signals import Signals
from sampletool.state import connect, errors, sqlite, worker
from sampletool.state.connect import open_store
from sampletool.state.exchange import NoReply
from sampletool.state.memory import _READING_VERBS, MemoryStore
from sampletool.state.protocol import Claimed, NewTask
from sampletool.state.sqlite import _PERMISSION_ERRORS, _SYNCHRONOUS_NAMES, SqliteStore
from sampletool.state.store import Store
from sampletool.state.store_url import refuse_password, shown_url
from sampletool.state.worker import Worker, WorkOptions
from tests.state.support.outcomes import outcome, raises
from tests.state.support.store_client import make_policy

SQLITE = {
    "SQLITE_FULL": NoSpace,
    "SQLITE_READONLY": ReadOnly,
    "SQLITE_READONLY_DIRECTORY": ReadOnly,
    "SQLITE_CANTOPEN": PermissionDenied,
    "SQLITE_CANTOPEN_ISDIR": PermissionDenied,
    "SQLITE_PERM": PermissionDenied,
    "SQLITE_AUTH": PermissionDenied,
    "SQLITE_AUTH_USER": PermissionDenied,
    "SQLITE_CORRUPT": IoFailure,
    "": IoFailure,
}

UNDONE = {"25P03": ("25P03",), "57014": ("57014",), "40": ("40001", "40P01")}
"""For each beginning of an SQLSTATE, states of a transaction that the server has undone."""

LOST = {"57P": ("57P01", "57P02", "57P03"), "08": ("08000", "08003", "08006")}
"""For each beginning of an SQLSTATE, states of a connection that is lost."""

REFUSALS = {
    "42501": errors.StoreForbidden,
    "25006": errors.StoreReadOnly,
    "53100": errors.StoreFull,
}

REASONS = {
    'FATAL: password authentication failed for user "u"': "auth",
    "connection failed: fe_sendauth: no password supplied": "auth",
    'FATAL: no pg_hba.conf entry for host "10.0.0.1"': "auth",
    'FATAL: role "u" does not exist': "auth",
    'FATAL: role "u" is not permitted to log in': "auth",
    'FATAL: database "d" does not exist': "none",
    "FATAL: sorry, too many clients already": "it has no free connection",
    "FATAL: too many connections for role": "it has no free connection",
    "FATAL: remaining connection slots are reserved": "it has no free connection",
    "connection timeout expired": "it did not reply in time",
    "Connection timed out": "it did not reply in time",
    "could not translate host name": "the name of its host is unknown",
    "Name or service not known": "the name of its host is unknown",
    "Connection refused": "no server is listening there",
    "No such file or directory": "no server is listening there",
    "something else": "no connection",
}
"""At least one text for each alternative of each pattern."""

OPTION_SIGNS = "?&;#"


def test_the_refusals_of_sqlite_are_the_ones_that_are_tested() -> None:
    assert _PERMISSION_ERRORS == ("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")


@pytest.mark.parametrize("name", [*SQLITE, *_PERMISSION_ERRORS])
def test_each_error_of_sqlite_becomes_an_error_of_ours(name: str) -> None:
    error = sqlite3.OperationalError("why")
    error.sqlite_errorname = name

    assert type(sqlite._to_our_error(error, "/w/state.db")) is SQLITE[name]


@pytest.mark.parametrize("level", range(len(_SYNCHRONOUS_NAMES)))
def test_each_level_of_flushing_is_named_as_sqlite_numbers_it(
    level: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state.db").touch()
    store = SqliteStore(tmp_path / "state.db", make_policy())
    rows = {"integrity_check": [("ok",)], "journal_mode": [("wal",)], "synchronous": [(level,)]}
    session = SimpleNamespace(rows=lambda statement: rows[statement.removeprefix("PRAGMA ")])
    monkeypatch.setattr(store, "transact", lambda body: body(session))

    settings = store.describe().settings

    assert settings["synchronous"] == ("off", "normal", "full", "extra")[level]


# PostgreSQL


@pytest.fixture
def refused_by_postgres() -> Callable[[str, str, bool], Exception]:
    """Return a function that returns our error for an error of the driver."""
    psycopg = pytest.importorskip("psycopg")
    from sampletool.state.postgres import PostgresStore

    store = PostgresStore("postgresql://h/d", make_policy())

    def refused(state: str, text: str, was_sent: bool) -> Exception:
        kind = psycopg.errors.lookup(state) if state else psycopg.OperationalError
        error: Exception = outcome(lambda: store._error_to_raise(kind(text), was_sent=was_sent))
        return error

    return refused


def test_the_states_of_postgres_are_the_ones_that_are_tested() -> None:
    pytest.importorskip("psycopg")
    from sampletool.state import postgres

    assert set(postgres._UNDONE_STATES) == set(UNDONE)
    assert set(postgres._LOST_STATES) == set(LOST)
    assert postgres._REFUSALS == REFUSALS


@pytest.mark.parametrize("state", [state for states in UNDONE.values() for state in states])
def test_a_transaction_that_the_server_has_undone_may_always_be_repeated(
    state: str, refused_by_postgres: Callable[[str, str, bool], Exception]
) -> None:
    error = refused_by_postgres(state, "undone", True)

    assert isinstance(error, NoReply)
    assert not error.was_sent


@pytest.mark.parametrize("state", [*(state for states in LOST.values() for state in states), ""])
def test_after_a_lost_connection_only_an_unsent_request_may_be_repeated(
    state: str, refused_by_postgres: Callable[[str, str, bool], Exception]
) -> None:
    for was_sent in (False, True):
        error = refused_by_postgres(state, "lost", was_sent)

        assert isinstance(error, NoReply)
        assert error.was_sent == was_sent


@pytest.mark.parametrize("state", [*REFUSALS, "42601", "22003"])
def test_each_refusal_of_postgres_becomes_an_error_of_ours(
    state: str, refused_by_postgres: Callable[[str, str, bool], Exception]
) -> None:
    assert type(refused_by_postgres(state, "no", True)) is REFUSALS.get(state, errors.StoreFailure)


@pytest.mark.parametrize("text", REASONS)
def test_each_text_of_a_failed_connection_has_its_reason(
    text: str, refused_by_postgres: Callable[[str, str, bool], Exception]
) -> None:
    error = refused_by_postgres("", text, True)

    reason = REASONS[text]
    if reason == "auth":
        assert type(error) is errors.StoreAuthFailed
    elif reason == "none":
        assert type(error) is InvalidValues
    else:
        assert type(error) is NoReply
        assert reason in str(error)


@pytest.mark.parametrize("name", ["fsync", "synchronous_commit", "full_page_writes"])
def test_each_setting_of_postgres_that_loses_writes_is_a_problem(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("psycopg")
    from sampletool.state.postgres import PostgresStore

    store = PostgresStore("postgresql://h/d", make_policy())
    settings = {
        "fsync": "on",
        "synchronous_commit": "on",
        "full_page_writes": "on",
        "server_version": "18",
        name: "off",
    }

    def rows(statement: str) -> list[tuple[str, str]]:
        return [(known, value) for known, value in settings.items() if f"'{known}'" in statement]

    session = SimpleNamespace(rows=rows)
    monkeypatch.setattr(store, "look", lambda body: body(session))
    monkeypatch.setattr(store, "_send", lambda request, body, tables: body(session))

    description = outcome(store.describe)
    assert description.problems == [f"{name} is off"]
    protecting = ("fsync", "synchronous_commit", "full_page_writes")
    assert description.settings == {setting: settings[setting] for setting in protecting}
    assert description.server == "PostgreSQL 18 (postgresql://h/d)"


# Redis


def redis_error(kind: str, text: str) -> Exception:
    from redis import exceptions

    error: Exception = getattr(exceptions, kind)(text)
    return error


REDIS: dict[tuple[str, str], type[Exception] | str] = {
    ("AuthenticationError", "no"): errors.StoreAuthFailed,
    ("ResponseError", "NOAUTH Authentication required"): errors.StoreAuthFailed,
    ("ResponseError", "WRONGPASS invalid"): errors.StoreAuthFailed,
    ("NoPermissionError", "NOPERM"): errors.StoreForbidden,
    ("ReadOnlyError", "READONLY"): errors.StoreReadOnly,
    ("OutOfMemoryError", "OOM"): errors.StoreFull,
    ("ResponseError", "MISCONF cannot write"): errors.StoreFull,
    ("ResponseError", "ERR unknown"): errors.StoreFailure,
    ("ResponseError", "BUSY a script runs"): "not sent",
    ("BusyLoadingError", "LOADING"): "not sent",
    ("MaxConnectionsError", "max"): "not sent",
    ("TimeoutError", "slow"): "sent",
    ("ConnectionError", "cut"): "sent",
}
"""The error that each error of the driver becomes, if it comes after a request was sent.

Instead of an error, it may be whether the server may have obeyed the request.
"""


@pytest.mark.parametrize(("kind", "text"), REDIS)
def test_each_error_of_redis_becomes_an_error_of_ours(kind: str, text: str) -> None:
    pytest.importorskip("redis")
    store: Any = open_store("redis://h", None, make_policy())

    error = outcome(lambda: store._error_to_raise(redis_error(kind, text), was_sent=True))

    if isinstance(error, NoReply):
        assert REDIS[kind, text] == ("sent" if error.was_sent else "not sent")
    else:
        assert type(error) is REDIS[kind, text]


def test_the_errors_of_redis_are_the_ones_that_are_tested() -> None:
    redis = pytest.importorskip("redis")
    from sampletool.state import redis as module

    assert module._LOGIN_REFUSALS == ("NOAUTH", "WRONGPASS")
    assert {kind.__name__ for kind in module._ERRORS_BEFORE_EXECUTION} == {
        "ResponseError",
        "BusyLoadingError",
        "MaxConnectionsError",
    }
    assert module._SHOWN_SETTINGS == ("maxmemory_policy", "aof_enabled", "role", "appendfsync")
    assert redis.exceptions.MaxConnectionsError is not redis.exceptions.ConnectionError


@pytest.mark.parametrize(
    ("info", "problem"),
    [
        ({}, None),
        ({"maxmemory_policy": "noeviction", "appendfsync": "everysec", "role": "master"}, None),
        ({"maxmemory_policy": "allkeys-lru"}, "allkeys-lru may evict"),
        ({"aof_enabled": 0}, "no append-only file"),
        ({"appendfsync": "no"}, "appendfsync is no"),
        ({"aof_last_write_status": "err"}, "could not write"),
        ({"role": "slave"}, "replica"),
        ({"role": "replica"}, "replica"),
    ],
)
def test_each_setting_of_redis_that_loses_writes_is_a_problem(
    info: dict[str, Any], problem: str | None
) -> None:
    pytest.importorskip("redis")
    from sampletool.state.redis import _find_problems

    found = _find_problems({"aof_enabled": 1, **info})

    if problem is None:
        assert found == []
    else:
        (only_one,) = found
        assert problem in only_one


REFUSALS_OF_SCRIPT: dict[str, tuple[list[Any], str]] = {
    "TASK_NOT_FOUND": (["a"], '"a"'),
    "TASK_CONFLICT": (["a"], '"a"'),
    "LEASE_LOST": (
        ["a", 1, 2, "done"],
        'Claim a:1 is not current. Task "a" is at generation 2, and its status is done',
    ),
    "VERSION_CONFLICT": (["k", 3, 4], "k is at version 4, but you passed --if-version 3"),
    "TASK_ENDED": (["a", "done"], 'Cannot cancel task "a": its status is done'),
    "TASK_NOT_FAILED": (["a", "done"], 'Cannot retry task "a": its status is done'),
    "COUNTER_RANGE": (["c", 5, 6], "c is 5. Adding 6"),
}


def test_the_refusals_of_the_script_are_the_ones_that_are_tested() -> None:
    pytest.importorskip("redis")
    from sampletool.state.redis import _REFUSALS

    assert set(_REFUSALS) == set(REFUSALS_OF_SCRIPT)


@pytest.mark.parametrize("code", REFUSALS_OF_SCRIPT)
def test_each_refusal_of_the_script_carries_its_facts(
    code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("redis")
    store: Any = open_store("redis://h", None, make_policy())
    facts, message = REFUSALS_OF_SCRIPT[code]
    monkeypatch.setattr(store, "_check_server_once", lambda: None)
    monkeypatch.setattr(store, "_send", lambda request, ask: ask(False))
    monkeypatch.setattr(store, "_migrate_once", lambda: None)
    monkeypatch.setattr(store, "_script", lambda keys, arguments: ["refused", code, *facts])

    with raises(ToolError, match=re.escape(message)) as refused:
        store.counter_add("c", 1)

    assert refused.value.code == code


# URLs


def test_the_schemes_of_stores_are_the_ones_that_are_tested() -> None:
    assert connect._POSTGRES_SCHEMES == ("postgresql", "postgres")
    assert connect._REDIS_SCHEMES == ("redis", "rediss", "valkey", "valkeys", "unix", "redis+unix")


@pytest.mark.parametrize("scheme", connect._POSTGRES_SCHEMES)
def test_each_scheme_of_postgres_names_such_a_store(scheme: str) -> None:
    pytest.importorskip("psycopg")

    assert type(open_store(f"{scheme}://h/d", None, make_policy())).__name__ == "PostgresStore"


@pytest.mark.parametrize("scheme", connect._REDIS_SCHEMES)
def test_each_scheme_of_redis_names_such_a_store_with_its_kind_of_connection(scheme: str) -> None:
    redis = pytest.importorskip("redis")
    kinds = {
        "redis": redis.Connection,
        "valkey": redis.Connection,
        "rediss": redis.SSLConnection,
        "valkeys": redis.SSLConnection,
        "unix": redis.UnixDomainSocketConnection,
        "redis+unix": redis.UnixDomainSocketConnection,
    }

    place = "/run/r.sock" if "unix" in scheme else "h"
    store: Any = open_store(f"{scheme}://{place}", None, make_policy())

    assert issubclass(store._client.connection_pool.connection_class, kinds[scheme])


@pytest.mark.parametrize("sign", OPTION_SIGNS)
def test_an_option_in_a_url_is_not_shown_and_must_not_be_a_password(sign: str) -> None:
    assert shown_url(f"redis://h/0{sign}password=hunter2") == "redis://h/0"
    with raises(InvalidValues, match="password"):
        refuse_password(f"redis://h/0{sign}password=hunter2")


@pytest.mark.parametrize(
    "option", ["password=x", "scram_client_key=x", "pass%77ord=x", "sslpassword=x", "token=x"]
)
def test_each_option_that_is_secret_is_refused_on_a_command_line(option: str) -> None:
    with raises(InvalidValues, match="password"):
        refuse_password(f"postgresql://h/d?{option}")


@pytest.mark.parametrize(
    "url", ["postgresql://h/d?sslmode=require", "redis://u@h", "sqlite:///a:b@c?token=x"]
)
def test_a_url_without_a_password_is_accepted(url: str) -> None:
    refuse_password(url)


# Verbs


def test_only_verbs_that_write_are_written_to_the_journal() -> None:
    written: list[str] = []

    async def journal(verb: str, _name: str) -> None:
        written.append(verb)

    async def use_every_verb() -> None:
        store = MemoryStore(journal)
        await store.counter_add("c", 1)
        await store.state_set("k", 1)
        await store.task_add("work", [NewTask("x", "a")])
        await store.counter_get("c")
        await store.counter_list("", 1)
        await store.state_get("k")
        await store.state_list("", "", 1)
        await store.task_list(None, None, 0, 1)
        await store.task_left("work")
        await store.task_show("a")
        await store.task_stats()
        await store.health()

    asyncio.run(use_every_verb())

    assert written == ["counter_add", "state_set", "task_add"]
    assert set(_READING_VERBS) == {
        "counter_get",
        "counter_list",
        "state_get",
        "state_list",
        "task_list",
        "task_left",
        "task_show",
        "task_stats",
        "health",
    }


@pytest.fixture
def idle_worker(tmp_path: Path, home: Path) -> Iterator[Worker]:
    """Yield a worker that has no tasks."""
    context = Context(Signals())
    options = WorkOptions(
        queue="work",
        argv=[],
        jobs=1,
        lease_ms=60_000,
        max_attempts=0,
        store_url=f"sqlite://{tmp_path}/state.db",
    )
    with context.exit_stack:
        yield Worker(context, options)


OUTAGES = {
    "StoreUnavailable": errors.StoreUnavailable(store="s", reason="it is unreachable"),
    "LockTimeout": LockTimeout("store", Owners([])),
    "StoreBusy": errors.StoreBusy("s", 1),
}


@pytest.mark.parametrize("name", OUTAGES)
def test_a_worker_tolerates_each_kind_of_outage(idle_worker: Worker, name: str) -> None:
    def ask() -> None:
        raise OUTAGES[name]

    with idle_worker.tolerate_outage():
        ask()

    assert not idle_worker.is_store_reachable


@pytest.mark.parametrize("name", ["LeaseLost", "TaskNotFound"])
def test_each_kind_of_lost_claim_ends_its_command(
    idle_worker: Worker, name: str, tmp_path: Path
) -> None:
    lost = {
        "LeaseLost": errors.LeaseLost("a", 1, 2, "claimed"),
        "TaskNotFound": errors.TaskNotFound(task="a"),
    }

    def refuse(*_args: object, **_options: object) -> None:
        raise lost[name]

    store: Any = SimpleNamespace(task_renew=refuse)
    idle_worker.store = cast(Store, store)
    task = Claimed("a", generation=1, body="x", attempts=1, lease_expires_at="")
    command = worker._RunningCommand(task, tmp_path / "body", 0.0, has_started=True)
    idle_worker.running["a:1"] = command

    idle_worker._renew(command)

    assert idle_worker.running == {}
    assert idle_worker.lost == 1


@pytest.mark.parametrize("kind", ["cursor", "prefix"])
def test_a_prefix_and_a_cursor_may_be_empty_but_not_unprintable(kind: str, tmp_path: Path) -> None:
    store = open_store(f"sqlite://{tmp_path}/state.db", None, make_policy())
    prefix = "\n" if kind == "prefix" else ""
    cursor = "\n" if kind == "cursor" else ""

    assert store.state_list("", "", 1) == []
    with raises(InvalidValues, match="1 to 200"):
        store.state_list(prefix, cursor, 1)
    store.close()
