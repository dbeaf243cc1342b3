"""The production store, as the scenarios use it: SQLite, or the server of TOOL_LAB_STORE.

With SQLite, each lock and each statement is a step. On a server, a step is a whole verb of the
store, such as `state_set`, which this module announces with an audit event of its own. The lab does
not step the server itself, and relies on its guarantees.
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
from ...production_lock import PATIENT_WAIT_SECONDS, lock_named
from ...scenario import STORE_VARIABLE, Removal, Step

__all__ = ["key", "no_transaction", "open_here", "steps", "writes"]

VERB = "stepping.verb"
"""The audit event that announces a verb of a server."""


def open_here(directory: Path | None = None) -> Store:
    """Open the store of a run, for the worker in the current directory.

    With a directory, open the store of the run with this scratch directory, and announce no verbs.
    """
    if directory is None:
        scratch_directory = Path.cwd()
    else:
        scratch_directory = directory
    signals = Signals()

    def hold_lock(path: Path, name: str, _recorded: bool) -> AbstractContextManager[Any]:
        return lock_named(name, signals, path).exclusively(PATIENT_WAIT_SECONDS)

    def ignore_warning(code: str, message: str) -> None:
        """Do nothing. Nobody reads the warnings of a worker."""

    retry_policy = RetryPolicy(hold_lock, signals, ignore_warning, PATIENT_WAIT_SECONDS)
    url = os.environ.get(STORE_VARIABLE)
    if url is None:
        return open_store(f"sqlite://{scratch_directory}/state.db", None, retry_policy)
    store = open_store(url, None, retry_policy)
    if directory is not None:
        return store
    return cast(Store, _AnnouncingStore(store))


def store_in(directory: Path) -> AbstractContextManager[Store]:
    """Open the store of the run in this directory, and close it at the end of the block."""
    return closing(open_here(directory))


def prepare(directory: Path) -> None:
    """Create the store, with one key that no worker uses."""
    with store_in(directory) as store:
        store.state_set(key("another", directory), "")


def key(name: str, directory: Path | None = None) -> str:
    """Return a key that no other run uses, even if the runs share a server."""
    if directory is None:
        directory = Path.cwd()
    return f"{directory.parent.name}.{name}"


def has(store: Store, name: str) -> bool:
    """Return whether the store has a value with this name."""
    try:
        store.state_get(key(name))
    except KeyNotFound:
        return False
    return True


def steps(name: str, *, sql: str, verb: str, after: tuple[str, ...] = ()) -> tuple[Step, ...]:
    """Return a step in two forms: a statement that begins with `sql`, and a verb on a server."""
    return Step(name, "sql", "state.db", statement=sql, after=after), _on_server(name, verb, after)


def writes(name: str, *, verb: str, after: tuple[str, ...] = ()) -> tuple[Step, ...]:
    """Return a step that writes in two forms: a request for the SQLite lock, and a verb."""
    on_sqlite = Step(name, "fcntl.flock", _LOCK_FILE, kind="lock", after=after)
    return on_sqlite, _on_server(name, verb, after)


def transaction(verb: str, statements: dict[str, str]) -> tuple[Step, ...]:
    """Return the steps of a verb on SQLite: lock, these statements, and commit."""
    statement_steps = []
    for name, statement in statements.items():
        statement_steps.append(Step(name, "sql", "state.db", statement=statement))
    return (LOCK, *statement_steps, *steps("commit", sql="COMMIT", verb=verb))


def _on_server(name: str, verb: str, after: tuple[str, ...]) -> Step:
    """Return a step that is a verb of the store on a server."""
    return Step(name, VERB, statement=verb.upper(), after=after)


_LOCK_FILE = ".state.db.lock"
"""The file that the SQLite store locks before each write."""
LOCK = Step("lock", "fcntl.flock", _LOCK_FILE, kind="lock", holds=True)


class _AnnouncingStore:
    """A store on a server that announces each verb before it begins."""

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
"""The code that protects a write in SqliteStore.transact. The removals below replace it."""


def unprotected(breaks: str, refused: str) -> tuple[Removal, ...]:
    """Return the removals of the mechanism that protects every write.

    This mechanism is a transaction that takes its lock before it reads.
    """
    return no_transaction(breaks), with_reading_first(refused)


def no_transaction(breaks: str) -> Removal:
    """Return the removal of the transaction and its lock."""
    return Removal(
        "state/sqlite.py:SqliteStore.transact",
        summary="run each statement by itself, without a lock and without a transaction",
        pattern=_TRANSACTION,
        instead="with self._our_errors():\n    return body(self._open(to_write=True))",
        breaks=breaks,
    )


def with_reading_first(breaks: str) -> Removal:
    """Return the removal of the lock before the first read."""
    return Removal(
        "state/sqlite.py:SqliteStore.transact",
        summary="begin the transaction with a read, and take no lock before it",
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
