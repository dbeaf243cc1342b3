"""A transaction reads a number, adds one, and writes it. SQLite may wait up to an hour for a lock.

And still one of two fails at once: "database is locked". Both have read, so both hold on to what they saw. One becomes
the writer. The other one may not write any more, because what it has read is old, and waiting would not make it new.
So SQLite does not wait, whatever the timeout says; and trying the statement again does not help either.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from ...scenario import History, Scenario, Step, Way
from ._stores import key, open_here, store_in, transaction, with_reading_first

HOUR_SECONDS = 3600


def naive(worker: str) -> None:
    add_one(tries=1)


def wrong_try_again(worker: str) -> None:
    add_one(tries=3)


def add_one(tries: int) -> None:
    with closing(sqlite3.connect("counts.db", timeout=HOUR_SECONDS, isolation_level=None)) as db:
        db.execute("BEGIN")
        (count,) = db.execute("SELECT count FROM counts").fetchone()
        for left in reversed(range(tries)):
            with suppress(*[sqlite3.OperationalError] * bool(left)):
                db.execute("UPDATE counts SET count = ?", (count + 1,))
                break
        db.execute("COMMIT")


def fixed(worker: str) -> None:
    open_here().counter_add(key("count"), 1)


def prepare(directory: Path) -> None:
    with closing(sqlite3.connect(directory / "counts.db", isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE counts (count integer)")
        db.execute("INSERT INTO counts VALUES (0)")
    with store_in(directory) as store:
        store.counter_add(key("count", directory), 0)


def look(directory: Path) -> int:
    """Wherever this way counts."""
    with closing(sqlite3.connect(directory / "counts.db")) as db:
        (count,) = db.execute("SELECT count FROM counts").fetchone()
    with store_in(directory) as store:
        counted = store.counter_get(key("count", directory))
    return int(count or counted)


def invariant(history: History) -> Iterator[str]:
    """No worker is refused where waiting helps, and every answered one is counted."""
    for letter in history.failed:
        yield f"{letter} was refused at once: database is locked."
    if history.is_over and history.now != len(history.served):
        yield f"{len(history.served)} were answered that they are counted, and the number is {history.now}."


scenario = Scenario(
    title="A read that turns into a write",
    rule="A transaction that is going to write says so when it begins: BEGIN IMMEDIATE.",
    happened=(
        "Cardano's consensus layer, twelve nodes under load: 297 of these failures, each from a transaction that read "
        "before it wrote. Trying the statement again never helped, and took nodes down.",
        "https://github.com/IntersectMBO/ouroboros-consensus/pull/2233",
    ),
    question="A and B have both read; A writes and commits. B may wait for an hour. How long does it wait?",
    shared="count",
    private=("count",),
    ways={
        "naive": Way(
            says="BEGIN, read, write, COMMIT, with a timeout of an hour",
            because="B has read what is old now, and no wait can make it new: it is refused without one.",
        ),
        "wrong-try-again": Way(
            says="the same, and the statement is tried again",
            shows="A1 B1 A2 B2 B3 B4",
            because="as long as its transaction lasts, B sees what was there when it first read.",
        ),
        "fixed": Way(
            says="tool counter add: BEGIN IMMEDIATE, under a lock that is fair",
            steps=transaction("counter_add", {"read": "SELECT VALUE FROM tool_counters"}),
            shows="A1 B1 A2 A3",
            because="B began to read only when A had committed.",
        ),
    },
    steps=(
        Step("read", "sql", "counts.db", statement="SELECT"),
        Step("write, commit", "sql", "counts.db", statement="UPDATE"),
    ),
    mechanisms=(with_reading_first("was refused at once"),),
    symbol="sampletool.state.sqlite:SqliteStore._transaction",
    still_broken_by="a framework that begins transactions by itself (Django has had `transaction_mode` since 5.1; "
    "Python's own `isolation_level` is `DEFERRED`), and a long read that keeps a checkpoint from ending.",
)
