"""sampletool/state/sqlite.py: one file, what may stand in its place, and who waits for whom."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest

from sampletool.kit.contract.errors import ExtraNotInstalled
from sampletool.kit.contract.file_errors import FileNotFound, IoFailure
from sampletool.kit.safety.errors import UnsafePath
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.processors import one_processor
from sampletool.state.connect import open_store
from sampletool.state.sqlite import SCHEMA_STEPS as SQLITE_STEPS
from sampletool.state.sqlite import Connection, SqliteStore
from tests.state.support.outcomes import outcome, raises
from tests.state.support.store_client import make_policy
from tests.state.support.stores import SharedBackend
from tests.state.support.waiting import wait_until

LONG = 3_600_000
WAITING = 16
MOST_TURNS = 20


def test_no_writer_starves(make_backend: Callable[[str], SharedBackend]) -> None:
    """Counted in turns, so that a slow machine changes nothing.

    Sixteen writers wait while another one has the lock. Then that one writes without a pause, until
    each of the others has had its turn. With SQLite's own busy handler instead of the fair lock, it
    has hundreds of turns first.
    """
    backend = make_backend("sqlite")
    with one_processor():
        greedy = backend.start("count_until_others_did", 0, WAITING, MOST_TURNS)
        others = [backend.start("say_so_and_count", number) for number in range(1, WAITING + 1)]
        for client in (greedy, *others):
            client.wait_until_ready()
    greedy.go()
    assert greedy.wait_until_stopped()
    for client in others:
        client.go()
        assert client.line() == "asking"
        wait_until(client.is_asleep)

    greedy.resume()

    assert greedy.result() < MOST_TURNS
    assert len({client.result() for client in others}) == WAITING


@pytest.mark.parametrize("planted", ["link", "fifo", "directory"])
def test_a_planted_file_is_refused(tmp_path: Path, planted: str) -> None:
    path = tmp_path / "state.db"
    if planted == "link":
        (tmp_path / "elsewhere").touch()
        path.symlink_to(tmp_path / "elsewhere")
    elif planted == "fifo":
        os.mkfifo(path)
    else:
        path.mkdir()

    with raises((UnsafePath, OSError)):
        open_store(f"sqlite://{path}", None, make_policy()).counter_add("hits", 1)

    if planted == "link":
        assert (tmp_path / "elsewhere").read_bytes() == b""


@pytest.mark.parametrize("verb", ["counter_add", "counter_get"])
def test_a_file_with_two_names_is_refused(tmp_path: Path, verb: str) -> None:
    """After a crash, SQLite finds the journal under one name, and misses it under the other."""
    path = tmp_path / "state.db"
    store = open_store(f"sqlite://{path}", None, make_policy())
    store.counter_add("hits", 1)
    store.close()
    (tmp_path / "other.db").hardlink_to(path)

    for name in (path, tmp_path / "other.db"):
        store = open_store(f"sqlite://{name}", None, make_policy())
        with raises(UnsafePath, match="hard link"):
            getattr(store, verb)("hits", *[1][: verb == "counter_add"])
        with raises(UnsafePath, match="hard link"):
            store.health()


def test_a_python_without_sqlite_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "_sqlite3", None)
    for name in ("sqlite3", "sqlite3.dbapi2", "sampletool.state.sqlite"):
        monkeypatch.delitem(sys.modules, name, raising=False)

    with raises(ExtraNotInstalled) as missing:
        open_store(f"sqlite://{tmp_path}/state.db", None, make_policy())

    assert "sqlite3" in missing.value.describe()["suggestion"]


def test_text_that_is_not_utf_8_in_the_file_is_an_expected_failure(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = open_store(f"sqlite://{path}", None, make_policy())
    store.state_set("key", "value")
    store.close()
    with sqlite3.connect(path) as vandal:
        vandal.execute("UPDATE tool_state SET value = CAST(x'ff' AS text)")
    vandal.close()

    damaged = open_store(f"sqlite://{path}", None, make_policy())
    assert outcome(lambda: damaged.state_get("key")) == "IO_ERROR"
    damaged.close()


def test_a_file_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    store = open_store(f"sqlite://{tmp_path}/real.db", None, make_policy())
    store.counter_add("hits", 1)
    store.close()
    (tmp_path / "state.db").symlink_to(tmp_path / "real.db")

    with raises(UnsafePath):
        open_store(f"sqlite://{tmp_path}/state.db", None, make_policy()).counter_get("hits")


def run_outside(path: Path, statement: str) -> str:
    """Run a statement in another process, which then closes the file. Return the rows as text."""
    program = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
print(*db.execute(sys.argv[2]))
db.close()
"""
    ran = subprocess.run(
        [sys.executable, "-c", program, path, statement],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return ran.stdout


def test_two_stores_of_one_process_lose_nothing_when_another_process_closes_the_file(
    tmp_path: Path,
) -> None:
    path = tmp_path / "state.db"
    first, second = (open_store(f"sqlite://{path}", None, make_policy()) for _ in range(2))
    first.counter_add("hits", 1)
    second.counter_add("hits", 1)
    run_outside(path, "PRAGMA user_version")

    value = second.counter_add("hits", 1).value

    assert value == 3
    assert run_outside(path, "SELECT value FROM tool_counters") == "(3,)\n"
    first.close()
    second.close()


def test_health_notices_an_index_that_misses_a_row(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = open_store(f"sqlite://{path}", None, make_policy())
    store.state_set("key", "value", expires_ms=LONG)
    store.close()
    with sqlite3.connect(path) as vandal:
        (root,) = vandal.execute(
            "SELECT rootpage FROM sqlite_master WHERE name = 'tool_state_expiring'"
        ).fetchone()
        (size,) = vandal.execute("PRAGMA page_size").fetchone()
    vandal.close()
    content = bytearray(path.read_bytes())
    content[(root - 1) * size + 3 : (root - 1) * size + 5] = b"\0\0"  # the number of its entries
    path.write_bytes(content)

    with closing(open_store(f"sqlite://{path}", None, make_policy())) as damaged:
        problems = damaged.health().problems

    assert "missing from index" in " ".join(problems)


def test_what_is_no_store_is_left_alone(tmp_path: Path) -> None:
    text, foreign = tmp_path / "text", tmp_path / "foreign"
    text.write_text("not a database, but long enough to look like one\n" * 100)
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()

    with raises(IoFailure):
        open_store(f"sqlite://{text}", None, make_policy()).counter_add("hits", 1)
    with raises(UnsafePath):
        open_store(f"sqlite://{foreign}", None, make_policy()).counter_add("hits", 1)
    with raises(FileNotFound):
        open_store(f"sqlite://{tmp_path}/none/state.db", None, make_policy()).counter_add("hits", 1)

    assert text.read_text().startswith("not a database")


def test_a_full_disk_is_said_so_and_changes_nothing(tmp_path: Path) -> None:
    full = (*SQLITE_STEPS, "PRAGMA max_page_count = 40")
    store = SqliteStore(tmp_path / "state.db", make_policy(), schema_steps=full)
    store.state_set("key", "small")

    assert outcome(lambda: store.state_set("key", "x" * 1024 * 1024)) == "NO_SPACE"

    assert store.state_get("key").value == "small"
    assert store.state_set("key", "again").version == 2
    store.close()


def test_an_outsider_who_locks_the_file_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = open_store(f"sqlite://{path}", None, make_policy(patience=0.2))
    store.counter_add("hits", 1)
    outsider = sqlite3.connect(path, isolation_level=None)
    outsider.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()

    assert outcome(lambda: store.counter_add("hits", 1)) == "LOCK_HELD"
    assert time.monotonic() - began < 15
    assert store.counter_get("hits") == 1

    outsider.execute("ROLLBACK")
    outsider.close()
    assert store.counter_add("hits", 1).value == 2
    store.close()


def test_a_file_with_the_current_schema_is_not_upgraded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An upgrade is a commit, and a commit flushes the disk."""
    upgraded: list[sqlite3.Connection] = []
    upgrade = SqliteStore._upgrade

    def record(store: SqliteStore, db: Connection) -> None:
        upgraded.append(db)
        upgrade(store, db)

    monkeypatch.setattr(SqliteStore, "_upgrade", record)
    first = SqliteStore(tmp_path / "state.db", make_policy())
    first.counter_add("hits", 1)
    assert len(upgraded) == 1
    second = SqliteStore(tmp_path / "state.db", make_policy())

    second.counter_add("hits", 1)

    assert len(upgraded) == 1
    assert second.counter_get("hits") == 2
    first.close()
    second.close()


def test_reading_an_older_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    today = SqliteStore(path, make_policy())
    today.counter_add("hits", 1)
    today.close()
    before = path.read_bytes()

    tomorrow = SqliteStore(
        path, make_policy(), schema_steps=(*SQLITE_STEPS, "CREATE TABLE tool_more (name text)")
    )

    assert tomorrow.counter_get("hits") == 1
    assert tomorrow.look(lambda db: db.rows("SELECT * FROM tool_more")) == []
    assert path.read_bytes() == before
    tomorrow.close()


def test_a_rehearsal_makes_no_store(tmp_path: Path) -> None:
    store = open_store(f"sqlite://{tmp_path}/state.db", None, make_policy(dry_run=True))

    assert store.counter_add("hits", 1).value == 1

    assert list(tmp_path.glob("*.db*")) == []
    store.close()


def test_health_says_what_the_database_does(tmp_path: Path) -> None:
    """It is asked, after a write: what we wanted would be there whatever it does."""
    store = open_store(f"sqlite://{tmp_path}/state.db", None, make_policy())
    store.counter_add("hits", 1)

    health = store.health()

    assert health.settings == {"journal_mode": "wal", "synchronous": "full"}
    assert health.problems == []
    store.close()


def test_a_file_of_another_user_is_refused(tmp_path: Path) -> None:
    path = Path("/etc/passwd")
    if os.geteuid() == 0:
        path = tmp_path / "state.db"
        store = open_store(f"sqlite://{path}", None, make_policy())
        store.counter_add("hits", 1)
        store.close()
        os.chown(path, 65534, 65534)

    with raises(UnsafePath, match="belongs to you"):
        open_store(f"sqlite://{path}", None, make_policy()).counter_get("hits")


def test_a_signal_ends_the_wait_for_a_file_that_an_outsider_locks(tmp_path: Path) -> None:
    path, terms = tmp_path / "state.db", make_policy(patience=20.0)
    store = open_store(f"sqlite://{path}", None, terms)
    store.counter_add("hits", 1)
    outsider = sqlite3.connect(path, isolation_level=None)
    outsider.execute("BEGIN EXCLUSIVE")
    Timer(0.3, lambda: setattr(terms.signals, "received", signal.SIGTERM)).start()

    assert outcome(lambda: store.counter_add("hits", 1)) == "INTERRUPTED"

    outsider.execute("ROLLBACK")
    outsider.close()
    store.close()


def test_where_fsync_stops_before_the_disk_sqlite_does_not(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "state.db", make_policy())

    flushes_fully = store.transact(lambda db: db.rows("PRAGMA fullfsync"))

    assert flushes_fully == [(1,)]
    store.close()


def test_damage_that_cannot_even_be_named_in_utf_8_is_an_expected_failure(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = open_store(f"sqlite://{path}", None, make_policy())
    store.counter_add("hits", 1)
    store.close()
    path.write_bytes(
        path.read_bytes().replace(b"CREATE TABLE tool_tasks", b"CREATE TABL\xff tool\xfftasks")
    )

    damaged = open_store(f"sqlite://{path}", None, make_policy())

    for ask in (lambda: damaged.counter_get("hits"), damaged.health):
        assert isinstance(failure_of(ask), IoFailure)
    damaged.close()


def test_a_value_that_is_no_json_any_more_is_an_expected_failure(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = open_store(f"sqlite://{path}", None, make_policy())
    store.state_set("key", {"a": 1})
    store.close()
    with sqlite3.connect(path) as vandal:
        vandal.execute("UPDATE tool_state SET value = substr(value, 1, 4)")
    vandal.close()

    with closing(open_store(f"sqlite://{path}", None, make_policy())) as damaged:
        failure = failure_of(lambda: damaged.state_get("key"))

    assert isinstance(failure, IoFailure)
    assert "damaged" in str(failure)
