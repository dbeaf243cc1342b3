"""The production store, as scenarios use it: SQLite in the scratch directory, or the server of TOOL_LAB_STORE.

On SQLite the steps are its locks and statements. A server is not stepped: there a step is a whole verb,
raised by this file as an audit event of its own, and what happens within one is the server's promise.
"""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, cast

from ....kit.contract.errors import KeyNotFound
from ....kit.safety.signals import Signals
from ....state.connect import open_store
from ....state.retry_policy import RetryPolicy
from ....state.store import Store
from ...ours import PATIENT_WAIT_SECONDS, lock_named
from ...scenario import STORE_VARIABLE, Removal, Step

__all__ = ["key", "no_transaction", "open_here", "steps", "writes"]

VERB = "stepping.verb"


def open_here(directory: Path | None = None) -> Store:
    """The store of the run whose scratch directory this is; the workers' current one."""
    place = Path.cwd() if directory is None else directory
    signals = Signals()

    def hold(path: Path, name: str, _recorded: bool) -> AbstractContextManager[Any]:
        return lock_named(name, signals, path).exclusively(PATIENT_WAIT_SECONDS)

    terms = RetryPolicy(hold, signals, lambda code, message: None, PATIENT_WAIT_SECONDS)
    url = os.environ.get(STORE_VARIABLE)
    if url is None:
        return open_store(f"sqlite://{place}/state.db", None, terms)
    store = open_store(url, None, terms)
    return store if directory is not None else cast(Store, _Told(store))


def store_in(directory: Path) -> AbstractContextManager[Store]:
    """The same from outside, for a moment."""
    return closing(open_here(directory))


def prepare(directory: Path) -> None:
    """A store in which nothing is that a worker asks for."""
    with store_in(directory) as store:
        store.state_set(key("another", directory), "")


def key(name: str, directory: Path | None = None) -> str:
    """A name that no other run uses, also on a server."""
    place = Path.cwd() if directory is None else directory
    return f"{place.parent.name}.{name}"


def has(store: Store, name: str) -> bool:
    try:
        store.state_get(key(name))
    except KeyNotFound:
        return False
    return True


def steps(name: str, *, sql: str, verb: str, after: tuple[str, ...] = ()) -> tuple[Step, ...]:
    """One step, on SQLite, where its statement begins like this, and on a server."""
    return Step(name, "sql", "state.db", statement=sql, after=after), _on_a_server(name, verb, after)


def writes(name: str, *, verb: str, after: tuple[str, ...] = ()) -> tuple[Step, ...]:
    """A whole verb that writes: on SQLite it begins with asking for the store's lock."""
    return Step(name, "fcntl.flock", _LOCK_FILE, kind="lock", after=after), _on_a_server(name, verb, after)


def transaction(verb: str, statements: dict[str, str]) -> tuple[Step, ...]:
    """A whole verb that is taken apart on SQLite: its lock, these statements and its commit."""
    asked = (Step(name, "sql", "state.db", statement=statement) for name, statement in statements.items())
    return (LOCK, *asked, *steps("commit", sql="COMMIT", verb=verb))


def _on_a_server(name: str, verb: str, after: tuple[str, ...]) -> Step:
    return Step(name, VERB, statement=verb.upper(), after=after)


_LOCK_FILE = ".state.db.lock"
LOCK = Step("lock", "fcntl.flock", _LOCK_FILE, kind="lock", holds=True)


class _Told:
    """A store on a server, which announces each verb before it begins."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def announced(*args: Any, **named: Any) -> Any:
            sys.audit(VERB, verb)
            return getattr(self._store, verb)(*args, **named)

        return announced


_TRANSACTION = """\
with (
    self._policy.hold_lock(self._lock_path, lock_name, is_first_write),
    self._our_errors(),
):
    db = self._open(to_write=True)
    with self._transaction(db):
        self._read_version(db)
        return body(db)
"""


def unprotected(breaks: str, refused: str) -> tuple[Removal, ...]:
    """Return the removals of the mechanism that every write rests on: a transaction that begins with its lock."""
    return no_transaction(breaks), with_reading_first(refused)


def no_transaction(breaks: str) -> Removal:
    return Removal(
        "state/sqlite.py:SqliteStore.transact",
        says="run each statement by itself, without a lock and without a transaction",
        pattern=_TRANSACTION,
        instead="with self._our_errors():\n    return body(self._open(to_write=True))",
        breaks=breaks,
    )


def with_reading_first(breaks: str) -> Removal:
    return Removal(
        "state/sqlite.py:SqliteStore.transact",
        says="begin the transaction with a read, and take no lock before it",
        pattern=_TRANSACTION,
        instead="""\
with self._our_errors():
    db = self._open(to_write=True)
    db.execute("BEGIN")
    answer = body(db)
    db.execute("COMMIT")
    return answer
""",
        breaks=breaks,
    )
