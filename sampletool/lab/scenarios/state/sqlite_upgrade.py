"""A transaction reads a number, adds one, and writes it. SQLite is told to wait up to an hour for a lock.

And still one of two fails at once: "database is locked". Both have read, so both hold on to what they saw. One becomes
the writer. The other one may not write any more, because what it has read is old, and waiting would not make it new.
So SQLite does not wait, whatever the timeout says; and trying the statement again does not help either.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

from sampletool.lab.scenario import History, Removal, Scenario, Step, Way
from sampletool.lab.scenarios.state._stores import LOCK, key, open_here, steps

HOUR_SECONDS = 3600


def naive(worker: str) -> None:
    add_one(tries=1)


def try_again(worker: str) -> None:
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
    store = open_here(directory)
    store.counter_add(key("count", directory), 0)
    store.close()


def look(directory: Path) -> int:
    """Wherever this way counts."""
    with closing(sqlite3.connect(directory / "counts.db")) as db:
        (count,) = db.execute("SELECT count FROM counts").fetchone()
    store = open_here(directory)
    counted = store.counter_get(key("count", directory))
    store.close()
    return int(count or counted)


def invariant(history: History) -> Iterator[str]:
    """Nobody is refused for what waiting would have solved, and whoever was answered is counted."""
    for letter, status in history.statuses.items():
        if status:
            yield f"{letter} was refused at once: database is locked."
    if history.is_over and history.now != len(history.served):
        yield f"{len(history.served)} were answered that they are counted, and the number is {history.now}."


READ_WRITE = (
    Step("read", "sql", "counts.db", statement="SELECT"),
    Step("write, commit", "sql", "counts.db", statement="UPDATE"),
)

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
    needs_store=True,
    prepare=prepare,
    look=look,
    invariant=invariant,
    ways={
        "naive": Way(
            says="BEGIN, read, write, COMMIT, with a timeout of an hour",
            program=naive,
            steps=READ_WRITE,
            shows="A1 B1 A2 B2",
            because="B has read what is old now, and no wait can make it new: it is refused without one.",
        ),
        "wrong-try-again": Way(
            says="the same, and the statement is tried again",
            program=try_again,
            steps=READ_WRITE,
            shows="A1 B1 A2 B2 B3 B4",
            because="as long as its transaction lasts, B sees what was there when it first read.",
        ),
        "fixed": Way(
            says="tool counter add: BEGIN IMMEDIATE, under a lock that is fair",
            program=fixed,
            steps=(
                LOCK,
                Step("read", "sql", "state.db", statement="SELECT VALUE FROM tool_counters"),
                *steps("commit", sql="COMMIT", verb="counter_add"),
            ),
            shows="A1 B1 A2 A3",
            because="B began to read only when A had committed.",
        ),
    },
    mechanisms=(
        Removal(
            "state/sqlite.py",
            says="a transaction that begins as a read, without the lock",
            line="""\
        with self._terms.hold(self._lock_path, name, self._connection is None), self._translated():
            db = self._open(to_write=True)
            with self._transaction(db):
                yield db
""",
            instead="""\
        with self._translated():
            db = self._open(to_write=True)
            db.execute("BEGIN")
            yield db
            db.execute("COMMIT")
""",
            breaks="was refused at once",
        ),
    ),
    symbol="sampletool.state.sqlite:Sqlite._transaction",
    still_broken_by="a framework that begins transactions by itself (Django has had `transaction_mode` since 5.1; "
    "Python's own `isolation_level` is `DEFERRED`), and a long read that keeps a checkpoint from ending.",
)
