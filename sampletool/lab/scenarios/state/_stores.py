"""The production store, as the scenarios use it: SQLite, or the server of TOOL_LAB_STORE.

With SQLite, each lock and each statement is a step. On a server, a step is a whole verb of the
store, such as `state_set`, which this module announces with an audit event of its own. The lab does
not step the server itself, and relies on its guarantees.
"""

import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, closing
from functools import partial
from pathlib import Path
from typing import Any, cast

from ....kit.contract.errors import KeyNotFound
from ....kit.safety.signals import Signals
from ....state.connect import open_store
from ....state.retry_policy import RetryPolicy
from ....state.store import Store
from ...production_lock import PATIENT_WAIT_SECONDS, lock_named
from ...scenario import STORE_VARIABLE, Mutation, Step

VERB_EVENT = "stepping.verb"
"""The audit event that announces a verb of a server."""

_DATABASE = "state.db"
"""The database of the SQLite store, in the scratch directory of the run."""
_LOCK_FILE = f".{_DATABASE}.lock"
"""The file that the SQLite store locks before each write."""


def open_shared_store() -> Store:
    """Open the store that the workers of this run share, for the worker in this process."""
    store = _open_store(Path.cwd())
    if STORE_VARIABLE in os.environ:
        # A worker on a server stops before each verb.
        return cast(Store, _AnnouncingStore(store))
    return store


def store_in(directory: Path) -> AbstractContextManager[Store]:
    """Open the store of the run in this directory, and close it at the end of the block.

    This is for the lab itself, which does not announce its verbs.
    """
    return closing(_open_store(directory))


def _open_store(directory: Path) -> Store:
    """Open the store of the run with this scratch directory."""
    default_url = f"sqlite://{directory}/{_DATABASE}"
    url = os.environ.get(STORE_VARIABLE, default_url)
    signals = Signals()
    retry_policy = RetryPolicy(
        hold_lock=partial(_hold_lock, signals),
        signals=signals,
        warn=_ignore_warning,
        requested_wait_seconds=PATIENT_WAIT_SECONDS,
    )
    return open_store(url, None, retry_policy)


def _hold_lock(
    signals: Signals, path: Path, name: str, _writes_record: bool
) -> AbstractContextManager[object]:
    """Hold a lock between processes until the block ends. Wait for it as long as necessary."""
    return lock_named(name, signals, path).exclusively(PATIENT_WAIT_SECONDS)


def _ignore_warning(_code: str, _message: str) -> None:
    """Do nothing, because nobody reads the warnings of a worker."""


class _AnnouncingStore:
    """A store on a server that announces each verb before it begins."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def announce_and_call(*args: Any, **named: Any) -> Any:
            sys.audit(VERB_EVENT, verb)
            return getattr(self._store, verb)(*args, **named)

        return announce_and_call


def prepare(directory: Path) -> None:
    """Create the store, with one key that no worker uses."""
    with store_in(directory) as store:
        store.state_set(run_key("another", directory), "")


def run_key(name: str, directory: Path | None = None) -> str:
    """Return a key that no other run uses, even if the runs share a server.

    `directory` is the scratch directory of the run. By default, it is the current directory.
    """
    if directory is None:
        directory = Path.cwd()
    return f"{directory.parent.name}.{name}"


def has_value(store: Store, name: str) -> bool:
    """Return whether the store has a value with this name."""
    try:
        store.state_get(run_key(name))
    except KeyNotFound:
        return False
    return True


def statement_steps(
    name: str, *, sql: str, verb: str, after_steps: tuple[str, ...] = ()
) -> tuple[Step, ...]:
    """Return a step in two forms: a statement that begins with `sql`, and a verb on a server."""
    on_sqlite = Step(name=name, event="sql", file=_DATABASE, statement=sql, after_steps=after_steps)
    return on_sqlite, _step_on_server(name, verb, after_steps)


def write_steps(name: str, *, verb: str, after_steps: tuple[str, ...] = ()) -> tuple[Step, ...]:
    """Return a step that writes in two forms: a request for the SQLite lock, and a verb."""
    on_sqlite = Step(
        name=name, event="fcntl.flock", file=_LOCK_FILE, kind="lock", after_steps=after_steps
    )
    return on_sqlite, _step_on_server(name, verb, after_steps)


def transaction_steps(verb: str, statements: dict[str, str]) -> tuple[Step, ...]:
    """Return the steps of a variant that runs one verb of the store, in both forms.

    On SQLite, the verb is a transaction: lock, these statements, and commit. `statements` maps the
    name of a step to the beginning of its SQL statement. On a server, the verb is a single step.
    """
    steps = [LOCK]
    for name, statement in statements.items():
        steps.append(Step(name=name, event="sql", file=_DATABASE, statement=statement))
    # The single step on a server has the name of the last step on SQLite.
    steps += statement_steps("commit", sql="COMMIT", verb=verb)
    return tuple(steps)


def _step_on_server(name: str, verb: str, after_steps: tuple[str, ...]) -> Step:
    """Return a step that is a verb of the store on a server."""
    return Step(name=name, event=VERB_EVENT, statement=verb.upper(), after_steps=after_steps)


LOCK = Step(name="lock", event="fcntl.flock", file=_LOCK_FILE, kind="lock", takes_lock=True)


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
"""The code that protects a write in SqliteStore.transact. The mutations below replace it."""


def without_transaction(expected_problem: str) -> Mutation:
    """Return the change of SqliteStore.transact that removes the transaction and its lock.

    A scenario whose fixed variant writes to the store must break with this change. The invariant
    then yields a sentence that contains `expected_problem`.
    """
    return Mutation(
        function="state/sqlite.py:SqliteStore.transact",
        summary="run each statement by itself, without a lock and without a transaction",
        original_code=_TRANSACTION,
        replacement_code="with self._our_errors():\n    return body(self._open(to_write=True))",
        expected_problem=expected_problem,
    )


def with_read_before_lock(expected_problem: str) -> Mutation:
    """Return the change of SqliteStore.transact that reads before it has the lock.

    A scenario whose fixed variant writes to the store must break with this change. The invariant
    then yields a sentence that contains `expected_problem`.
    """
    return Mutation(
        function="state/sqlite.py:SqliteStore.transact",
        summary="begin the transaction with a read, and take no lock before it",
        original_code=_TRANSACTION,
        replacement_code="""\
with self._our_errors():
    db = self._open(to_write=True)
    db.execute("BEGIN")
    answer = body(db)
    db.execute("COMMIT")
    return answer
""",
        expected_problem=expected_problem,
    )
