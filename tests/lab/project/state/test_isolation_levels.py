"""The table of isolation levels on the page about write skew, with a real PostgreSQL and SQLite."""

import re
import secrets
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from docs.lab.generate import LABS
from sampletool.kit.testing.leaks import outlives_the_test
from tests.state.support.servers import NoServer, Server, run_directory

psycopg = pytest.importorskip("psycopg")

LEVELS = ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")

Connection = Any
"""A connection of psycopg or of sqlite3. Both have `execute`, but no common type."""
Connect = Callable[[], Connection]


@pytest.fixture
def connect(testrun_uid: str) -> Iterator[Connect]:
    """Return a function that connects to a schema of this test."""
    try:
        # Other tests of the run may use the server as well.
        with outlives_the_test():
            server = Server("postgres", run_directory(testrun_uid, "postgres"))
    except NoServer as reason:
        pytest.skip(f"no postgres server: {reason}")
    host = quote(server.running.socket, safe="")
    schema = f"t{secrets.token_hex(6)}"
    url = f"postgresql://test@/postgres?host={host}&options=-csearch_path%3D{schema}"

    def connected() -> Connection:
        return psycopg.connect(url, autocommit=True)

    with connected() as admin:
        admin.execute(f"CREATE SCHEMA {schema}")  # pyright: ignore[reportArgumentType]
        create_tables(admin)
    yield connected
    server.leave()


def create_tables(database: Connection) -> None:
    database.execute("CREATE TABLE admins (name text)")
    database.execute("INSERT INTO admins VALUES ('A'), ('B')")
    database.execute("CREATE TABLE counts (count integer)")
    database.execute("INSERT INTO counts VALUES (0)")


@pytest.mark.parametrize("level", LEVELS)
def test_postgresql_prevents_what_the_table_says(level: str, connect: Connect) -> None:
    row = table()[f"PostgreSQL, {level}"]

    with connect() as first, connect() as second:
        begin = f"BEGIN ISOLATION LEVEL {level}"
        found = [lost_update(first, second, begin), write_skew(first, second, begin)]

    assert found == row


def test_sqlite_prevents_what_the_table_says(tmp_path: Path) -> None:
    row = table()["SQLite"]

    def connected() -> closing[sqlite3.Connection]:
        return closing(sqlite3.connect(tmp_path / "db", isolation_level=None))

    with connected() as first, connected() as second:
        first.execute("PRAGMA journal_mode = WAL")
        create_tables(first)
        found = [lost_update(first, second, "BEGIN"), write_skew(first, second, "BEGIN")]

    assert found == row


def test_locking_all_the_rows_lets_the_second_transaction_wait_and_count_again(
    connect: Connect,
) -> None:
    with connect() as first, connect() as second:
        first.execute("BEGIN")
        assert len(first.execute("SELECT * FROM admins FOR UPDATE").fetchall()) == 2
        # Without NOWAIT, it would wait here.
        with pytest.raises(psycopg.errors.LockNotAvailable):
            second.execute("SELECT * FROM admins FOR UPDATE NOWAIT")

        first.execute("DELETE FROM admins WHERE name = 'A'")
        first.execute("COMMIT")

        assert second.execute("SELECT name FROM admins FOR UPDATE").fetchall() == [("B",)]


def test_locking_all_the_rows_does_not_keep_others_from_adding_one(
    connect: Connect,
) -> None:
    with connect() as first, connect() as second:
        first.execute("BEGIN")
        first.execute("SELECT * FROM admins FOR UPDATE")

        second.execute("SET lock_timeout = '1s'")
        second.execute("INSERT INTO admins VALUES ('C')")

        assert first.execute("SELECT count(*) FROM admins").fetchone() == (3,)


def lost_update(first: Connection, second: Connection, begin: str) -> str:
    """Let two transactions add one to the same number. Return what the database does."""
    for transaction in (first, second):
        transaction.execute(begin)
        assert transaction.execute("SELECT count FROM counts").fetchone() == (0,)
    return outcome(first, second, ["UPDATE counts SET count = 1"] * 2)


def write_skew(first: Connection, second: Connection, begin: str) -> str:
    """Let the last two admins leave. Return what the database does."""
    for transaction in (first, second):
        transaction.execute(begin)
        assert transaction.execute("SELECT count(*) FROM admins").fetchone() == (2,)
    writes = ["DELETE FROM admins WHERE name = 'A'", "DELETE FROM admins WHERE name = 'B'"]
    return outcome(first, second, writes)


def outcome(first: Connection, second: Connection, writes: list[str]) -> str:
    """Let both transactions write and commit, one after the other."""
    first.execute(writes[0])
    first.execute("COMMIT")
    try:
        second.execute(writes[1])
        second.execute("COMMIT")
    except (psycopg.Error, sqlite3.OperationalError) as error:
        # The page says which SQLSTATE PostgreSQL uses. SQLite has none.
        assert getattr(error, "sqlstate", "40001") == "40001"
        second.execute("ROLLBACK")
        return "rejected"
    return "not prevented"


def table() -> dict[str, list[str]]:
    """Return the cells of each row of the page's table, by the first cell."""
    page = (LABS / "state" / "write-skew.md").read_text()
    rows = re.findall(r"^\| (PostgreSQL, [A-Z ]+|SQLite) \| (.*) \| (.*) \|$", page, re.MULTILINE)
    return {name: cells for name, *cells in rows}
