"""A store that speaks SQL. What SQLite and PostgreSQL do differently is in their own files.

A verb is one transaction: it takes what it needs to be alone with (an idempotency key, a task, a name, in this
order), and only then looks at the rows and at the clock, because what it read before waiting would be old. Then it
may read and write like the only one there is. SQLite has one lock for everything, so there nothing is left to take.
"""

import json
import os
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeVar

from . import sql_verbs
from .protocol import Health
from .retry_policy import RetryPolicy
from .sql_verbs import Session
from .store import Store, Write
from .values import decode

T = TypeVar("T")
_abandoned: list[Any] = []
"""Connections from before a fork: closing one in the child would end what the parent does with it."""


class SqlStore(Store):
    def __init__(self, terms: RetryPolicy, steps: tuple[str, ...]) -> None:
        self._terms = terms
        self._steps = steps
        """The schema, as the steps that lead to it: a store remembers how many it has been through."""
        self._connection: Any = None
        self._pid = os.getpid()

    def current(self) -> Any:
        """The one of this process, if there is one yet: a fork opens its own."""
        if self._pid != os.getpid():
            _abandoned.append(self._connection)
            self._connection, self._pid = None, os.getpid()
        return self._connection

    def close(self) -> None:
        if (connection := self.current()) is not None:
            connection.close()
        self._connection = None

    @abstractmethod
    def transact(self, body: Callable[[Session], T], *, may_repeat: bool) -> T:
        """Committed when it returns, undone if it raises."""

    def look(self, body: Callable[[Session], T]) -> T:
        """For what changes nothing."""
        return self.transact(body, may_repeat=True)

    @abstractmethod
    def describe(self) -> tuple[str, list[str], dict[str, str]]:
        """What it is, what could make it lose something, and how it is set up."""

    def write(self, write: Write) -> tuple[Any, bool]:
        def body(db: Session) -> tuple[Any, bool]:
            if write.key is not None:
                db.be_alone_with(write.key)
            if (fence := write.once.fence) is not None:
                sql_verbs.held(db, *fence, "claimed")
            known = f"SELECT digest, answer FROM tool_once WHERE key = :key AND {sql_verbs.living(db)}"
            for said, answer in db.rows(known, key=write.key) if write.key else []:
                if said != write.said:
                    raise write.reused()
                return decode(answer), True
            answer = getattr(sql_verbs, write.verb)(db, *write.arguments)
            if write.key is not None:
                _remember(db, write, answer)
            return answer, False

        return self.transact(body, may_repeat=write.may_repeat)

    def read(self, verb: str, *arguments: Any) -> Any:
        return self.look(lambda db: getattr(sql_verbs, verb)(db, *arguments))

    def health(self) -> Health:
        server, problems, settings = self.describe()
        now = self.look(lambda db: db.rows(f"SELECT {db.now}"))[0][0]
        return Health(server, problems, round(now - time.time() * 1000), settings)


def _remember(db: Session, write: Write, answer: Any) -> None:
    """In the transaction of the effect; and forget, in passing, some of what nobody can ask for any more."""
    put = f"""INSERT INTO tool_once (key, digest, answer, expires_at, task)
              VALUES (:key, :digest, :answer, {db.now} + CAST(:life AS bigint), CAST(:task AS text))
              ON CONFLICT (key) DO UPDATE
              SET digest = excluded.digest, answer = excluded.answer, expires_at = excluded.expires_at"""
    task = write.once.fence.task if write.once.fence else None
    db.rows(put, key=write.key, digest=write.said, answer=json.dumps(answer), life=write.key_life_ms, task=task)
    expired = f"SELECT key FROM tool_once WHERE expires_at <= {db.now} LIMIT 20 {db.unclaimed}"
    db.rows(f"DELETE FROM tool_once WHERE key IN ({expired})")
