"""Two SQLite transactions read a number, add one, and write it back.

Each may wait up to an hour for a lock. One of them still fails at once with "database is locked".
Both transactions have read, so each keeps its snapshot. One of them writes. The other one may not
write any more, because its snapshot is out of date, and waiting would not change that. So SQLite
does not wait, whatever the timeout is. Repeating the statement does not help either.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from ...scenario import History, Scenario, Step, Variant
from ._stores import (
    open_shared_store,
    run_key,
    store_in,
    transaction_steps,
    with_read_before_lock,
)

HOUR_SECONDS = 3600


def naive(worker: str) -> None:
    with connect() as db:
        db.execute("BEGIN")
        (count,) = db.execute("SELECT count FROM counts").fetchone()
        db.execute("UPDATE counts SET count = ?", (count + 1,))
        db.execute("COMMIT")


def wrong_try_again(worker: str) -> None:
    """Repeat the write if it fails. Wrong: the snapshot of the transaction stays out of date."""
    with connect() as db:
        db.execute("BEGIN")
        (count,) = db.execute("SELECT count FROM counts").fetchone()
        for tries_left in (2, 1, 0):
            try:
                db.execute("UPDATE counts SET count = ?", (count + 1,))
                break
            except sqlite3.OperationalError:
                if tries_left == 0:
                    raise
        db.execute("COMMIT")


def connect() -> closing[sqlite3.Connection]:
    """Return a connection that waits up to an hour for locks, and is closed after the block."""
    return closing(sqlite3.connect("counts.db", timeout=HOUR_SECONDS, isolation_level=None))


def fixed(worker: str) -> None:
    open_shared_store().counter_add(run_key("count"), 1)


def prepare(directory: Path) -> None:
    """Create a database with a count of 0, and a store with a counter that is 0."""
    with closing(sqlite3.connect(directory / "counts.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE counts (count integer)")
        db.execute("INSERT INTO counts VALUES (0)")
    with store_in(directory) as store:
        store.counter_add(run_key("count", directory), 0)


def read_state(directory: Path) -> int:
    """Return the number of times that a worker has added one."""
    # The fixed variant adds to a counter of the store. The other variants use this database.
    with closing(sqlite3.connect(directory / "counts.db")) as db:
        (count_in_database,) = db.execute("SELECT count FROM counts").fetchone()
    with store_in(directory) as store:
        count_in_store = store.counter_get(run_key("count", directory))
    # In each run, one of the two stays at 0.
    return int(count_in_database) + count_in_store


def invariant(history: History) -> Iterator[str]:
    """No worker fails because of another one, and each worker that reports success is counted."""
    for worker in history.failed_workers:
        yield f"{worker} failed at once: database is locked."
    count = history.state
    successes = len(history.successful_workers)
    if history.is_finished and count != successes:
        yield f"{successes} workers reported success, but the number is {count}."


scenario = Scenario(
    title='SQLite "database is locked" in spite of a timeout',
    subtitle="A transaction reads first, then writes, and fails at once.",
    rule="Start a transaction that writes with BEGIN IMMEDIATE.",
    happened=(
        "The consensus layer of Cardano hit this 297 times on twelve nodes under load. Each "
        "time, a transaction had read before it wrote. Repeating the statement never helped, and "
        "nodes went down.",
        "https://github.com/IntersectMBO/ouroboros-consensus/pull/2233",
    ),
    question=(
        "A and B have both read. A writes and commits. B may wait for an hour. How long does B "
        "wait?"
    ),
    shared="count",
    private_variables=("count",),
    variants={
        "naive": Variant(
            summary="runs BEGIN, reads, writes, with a timeout of an hour",
            explanation=(
                "The snapshot of B is out of date. No wait can change that, so SQLite rejects the "
                "write at once."
            ),
        ),
        "wrong-try-again": Variant(
            summary="does the same, and repeats the statement that failed",
            schedule="A1 B1 A2 B2 B3 B4",
            explanation="B sees its old snapshot until its transaction ends.",
        ),
        "fixed": Variant(
            summary="runs `tool counter add`, which uses BEGIN IMMEDIATE under a fair lock",
            steps=transaction_steps("counter_add", {"read": "SELECT VALUE FROM tool_counters"}),
            schedule="A1 B1 A2 A3",
            explanation="B started to read only after A had committed.",
        ),
    },
    steps=(
        Step(name="read", event="sql", file="counts.db", statement="SELECT"),
        Step(name="write, commit", event="sql", file="counts.db", statement="UPDATE"),
    ),
    mechanisms=(with_read_before_lock("failed at once"),),
    production_code="sampletool.state.sqlite:SqliteStore._transaction",
)
