"""What the two stores that speak SQL have in common. See sqlite.py and postgres.py for the rest.

Each verb is one transaction. It first locks what it needs: the idempotency key, then the task, then
the name. Only afterwards does it read rows and the clock, because what it had read before waiting
for a lock would be out of date. From then on it can read and write as if no other client existed.

SQLite has one lock for everything, so these locks do nothing there.
"""

import json
import os
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from . import sql_verbs
from .protocol import Fence, Health
from .retry_policy import RetryPolicy
from .sql_verbs import Session
from .store import Reply, Store, Write
from .values import decode

T = TypeVar("T")

_MAX_FORGOTTEN_RESULTS = 20
"""How many expired results a write removes. More would make one write slow."""

_connections_of_parents: list[Any] = []
"""The connections that a fork has inherited.

They are never closed. That would send the server the end of a connection that the parent uses.
"""


@dataclass(frozen=True)
class ServerDescription:
    """What a backend knows about its server or file."""

    server: str
    problems: list[str]
    settings: dict[str, str]

    def to_health(self, server_ms: float) -> Health:
        """Return the state of the server. `server_ms` is what its clock has just shown."""
        return Health(
            server=self.server,
            problems=self.problems,
            clock_skew_ms=round(server_ms - time.time() * 1000),
            settings=self.settings,
        )


class SqlStore(Store):
    """A store whose verbs are the functions of sql_verbs.py."""

    def __init__(self, policy: RetryPolicy, schema_steps: tuple[str, ...]) -> None:
        """Keep the policy, and the statements that lead from an empty database to the schema."""
        self._policy = policy
        self._schema_steps = schema_steps
        self._connection: Any = None
        self._pid = os.getpid()

    @abstractmethod
    def transact(self, body: Callable[[Session], T], write: Write | None = None) -> T:
        """Return what `body` returns, and commit. If it raises an error, undo everything.

        `write` is the change that the body makes, for messages. Without one, repeating the body is
        harmless.
        """

    def look(self, body: Callable[[Session], T]) -> T:
        """Return what `body` returns. It changes nothing."""
        return self.transact(body)

    @abstractmethod
    def describe(self) -> ServerDescription:
        """Return what can be said about the server or the file."""

    def current_connection(self) -> Any:
        """Return the open connection of this process, or None. A forked process has none."""
        if self._pid != os.getpid():
            _connections_of_parents.append(self._connection)
            self._connection = None
            self._pid = os.getpid()
        return self._connection

    def close(self) -> None:
        """Close the connection of this process, if there is one."""
        connection = self.current_connection()
        if connection is not None:
            connection.close()
        self._connection = None

    def write(self, write: Write) -> Reply:
        """Make the change in one transaction, and remember its result there if it has a key."""

        def body(db: Session) -> Reply:
            if write.key is not None:
                db.lock_name(write.key)
            earlier_write = _find_earlier_write(db, write)
            fence = write.once.fence
            # Suppose that the reply of an earlier attempt was lost, and the claim has ended since.
            # Then the write has happened, so do not refuse it: return its result.
            is_by_claim = earlier_write is not None and earlier_write.is_by_claim(fence)
            if not (db.is_repetition and is_by_claim):
                sql_verbs.check_fence(db, fence)
            if earlier_write is not None:
                return earlier_write.replay(write)
            data = self._call(db, write.verb, write.arguments)
            if write.key is not None:
                _remember(db, write, data)
            return Reply(data)

        return self.transact(body, write)

    def read(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Return what the verb reads."""
        return self.look(lambda db: self._call(db, verb, arguments))

    def health(self) -> Health:
        """Return the state of the server or the file."""
        description = self.describe()
        rows = self.look(lambda db: db.rows(f"SELECT {db.now}"))
        return description.to_health(sql_verbs.single_value(rows))

    def _call(self, db: Session, verb: str, arguments: dict[str, Any]) -> Any:
        function = getattr(sql_verbs, verb)
        return function(db, *arguments.values())


@dataclass(frozen=True)
class _EarlierWrite:
    """An earlier write with the same key, as the store remembers it."""

    fingerprint: str
    result: str
    """The data of its reply, as JSON."""

    generation: int | None
    """The generation of the claim that made a fenced write. None without a fence."""

    def is_by_claim(self, fence: Fence | None) -> bool:
        """Return whether this claim made the write. The key names the task already."""
        return fence is not None and fence.generation == self.generation

    def replay(self, write: Write) -> Reply:
        """Return the result of the earlier write as that of a later `write` with the same key.

        Raise IdempotencyKeyReused if the two writes have different arguments. Only a claim with
        another generation may have others: it is a new execution of the task, and what an agent
        writes, for example, differs each time.
        """
        fence = write.once.fence
        must_be_equal = fence is None or self.is_by_claim(fence)
        if must_be_equal and self.fingerprint != write.fingerprint:
            raise write.key_reused_error()
        return Reply(decode(self.result), is_replayed=True)


def _find_earlier_write(db: Session, write: Write) -> _EarlierWrite | None:
    """Return an earlier write with the same key, or None if there is none."""
    if write.key is None:
        return None
    rows = db.rows(
        f"""
        SELECT digest, answer, generation FROM tool_once
        WHERE key = :key AND {sql_verbs.has_not_expired(db)}
        """,
        key=write.key,
    )
    if not rows:
        return None
    (row,) = rows
    fingerprint, result, generation = row
    return _EarlierWrite(
        fingerprint=fingerprint,
        result=result,
        generation=generation,
    )


def _remember(db: Session, write: Write, data: Any) -> None:
    """Store the result of a write, in the transaction of the write.

    Also remove a few results that have expired, so that they need no cleaning of their own.
    """
    fence = write.once.fence
    db.rows(
        f"""
        INSERT INTO tool_once (key, digest, answer, expires_at, task, generation)
        VALUES (
            :key, :fingerprint, :result,
            {db.now} + CAST(:lifetime AS bigint), CAST(:task AS text), :generation
        )
        ON CONFLICT (key) DO UPDATE SET
            digest = excluded.digest, answer = excluded.answer,
            expires_at = excluded.expires_at, generation = excluded.generation
        """,
        key=write.key,
        fingerprint=write.fingerprint,
        result=json.dumps(data),
        lifetime=write.key_lifetime_ms,
        task=None if fence is None else fence.task,
        generation=None if fence is None else fence.generation,
    )
    db.rows(
        f"""
        DELETE FROM tool_once WHERE key IN (
            SELECT key FROM tool_once WHERE expires_at <= {db.now}
            LIMIT {_MAX_FORGOTTEN_RESULTS} {db.skip_locked}
        )
        """
    )
