"""A store on a PostgreSQL server: for many machines, with transactions and real durability.

A verb is one transaction. If the connection is lost before COMMIT was sent, nothing happened, and the verb is done
again on a new one; after that only if repeating it is harmless, because nobody knows. A signal ends the wait, and
cancels on the server what was waited for. With asynchronous standbys a failover may lose the last writes.
"""

import logging
import re
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import cache
from typing import Any

import psycopg
from psycopg import errors as said

from ..kit.contract.errors import ToolError
from ..kit.contract.file_errors import IoFailure, NoSpace, PermissionDenied
from ..kit.contract.text import redact
from ..kit.program import PACKAGE
from ..kit.safety.signals import Signals
from . import errors
from .exchange import interruptibly, until_answered
from .retry_policy import RetryPolicy
from .sql import SqlStore, T
from .sql_verbs import Session, schema, schema_of_0_2
from .store_url import no_store, shown_url

logging.getLogger("psycopg").addHandler(logging.NullHandler())  # else its warnings are on stderr, in its own words

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
STEPS = (
    "CREATE TABLE tool_store (version integer NOT NULL); INSERT INTO tool_store VALUES (0);"
    + schema(text='text COLLATE "C"', serial="bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY"),
    schema_of_0_2(now=_NOW, task_of_key="substr(key, 6)::jsonb ->> 0"),
)
"""The schema, as the steps that lead to it: a store remembers how many it has been through. Only ever append."""
_ADVISORY = 0x746F6F6C
"""The first half of our advisory locks, to keep them apart from other people's."""
_GRACE_SECONDS = 0.5
"""The server is asked to give up a little before the driver does, so that its own reason is heard."""
_IDLE_MS = 2000
"""A client that is paused inside a transaction loses it after this long, and with it everything it locks."""
_UNDONE = ("25P03", "57014", "40")
"""The server has undone the transaction: the client was silent in it, it took too long, or others were in its way."""
_LOST = ("57P", "08")
"""The server shuts down or starts, or the connection is lost."""
_REFUSALS = {"42501": PermissionDenied, "25006": errors.StoreReadOnly, "53100": NoSpace}
"""By SQLSTATE: the privilege is missing, the server or the user is read-only, the disk is full."""
_REASONS = {
    r"authentication failed|no password|no pg_hba.conf entry|role .* (does not exist|is not permitted)": "auth",
    r"database .* does not exist": "none",
    r"too many (clients|connections)|connection slots": "it has no connection left for us",
    r"timeout|timed out": "it did not answer in time",
    r"translate host name|name or service": "the name of its host is not known",
    r"refused|no such file": "nothing listens there",
}
"""What a failed connection means: it carries no code, only a text, which may quote a part of a badly escaped URL."""


class Link(psycopg.Connection[Any]):
    """A connection that keeps a deadline and notices signals. Advisory locks stand for names that have no row yet."""

    now = _NOW
    locked = "FOR UPDATE"
    unclaimed = "FOR UPDATE SKIP LOCKED"
    signals: Signals
    give_up_at: float
    is_prepared = False
    """Whether its store has our schema, and not only until a rehearsal ends."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        return super().wait(self._watched(gen), interval, timeout)

    def _watched(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and (self.signals.is_over() or time.monotonic() > self.give_up_at):
                    with suppress(psycopg.Error):
                        self.cancel_safe(timeout=_GRACE_SECONDS)
                    raise psycopg.OperationalError("timeout")
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value

    def rows(self, statement: str, **values: Any) -> list[Any]:
        cursor = self.execute(_placed(statement), values)
        return cursor.fetchall() if cursor.description else []

    def each(self, statement: str, values: list[dict[str, Any]]) -> list[int]:
        if len(values) == 1:  # without the pipeline, which costs as much as the statement
            return [self.execute(_placed(statement), values[0]).rowcount]
        cursor = self.cursor()
        cursor.executemany(_placed(statement), values, returning=True)
        return [result.rowcount for result in cursor.results()] if values else []

    def be_alone_with(self, name: str) -> None:
        self.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_ADVISORY, name))


class Postgres(SqlStore):
    """See sql.py."""

    def __init__(self, url: str, terms: RetryPolicy, steps: tuple[str, ...] = STEPS) -> None:
        super().__init__(terms, steps)
        self._shown = shown_url(url)
        self._url = url

    def describe(self) -> tuple[str, list[str], dict[str, str]]:
        names = "('fsync', 'synchronous_commit', 'full_page_writes', 'server_version')"
        settings = dict(self.look(lambda db: db.rows(f"SELECT name, setting FROM pg_settings WHERE name IN {names}")))
        self.look(lambda db: db.rows("UPDATE tool_floor SET version = version"))  # refused where it may not be changed
        problems = [f"{name} is off" for name, setting in settings.items() if setting == "off"]
        return f"PostgreSQL {settings.pop('server_version')} ({self._shown})", problems, settings

    def transact(self, body: Callable[[Session], T], *, may_repeat: bool) -> T:
        """Committed when it returns, undone if it raises."""
        return until_answered(self._terms, self._url, lambda deadline: self._attempt(body, deadline, may_repeat))

    def _attempt(self, body: Callable[[Session], T], deadline: float, may_repeat: bool) -> T:
        is_certain = True
        try:
            link = self._connected(deadline + 2 * _GRACE_SECONDS)
            self._begin(link)
            answer = body(link)
            if not self._terms.rehearse:
                is_certain = may_repeat
                link.commit()
            return answer
        except psycopg.Error as error:
            raise self._our_error(error, is_certain=is_certain) from None
        finally:
            self._leave()

    def _connected(self, give_up_at: float) -> Link:
        link: Link | None = self.current()
        if link is None or link.closed:
            seconds = max(2, round(give_up_at - time.monotonic()))
            link = self._connection = interruptibly(
                self._terms.signals,
                lambda: Link.connect(
                    self._url,
                    connect_timeout=seconds,
                    application_name=PACKAGE,
                    client_encoding="utf8",
                    autocommit=True,
                    prepare_threshold=None,
                ),
                Link.close,
            )
        link.signals, link.give_up_at = self._terms.signals, give_up_at
        if not link.is_prepared:
            self._prepare(link)
            link.is_prepared = not self._terms.rehearse
        return link

    def _begin(self, link: Link) -> None:
        """In one message, and with limits that end with the transaction: behind a pooler the next is another's."""
        lock_ms = max(1, round(self._terms.seconds() * 1000))
        answer_seconds = self._terms.seconds(self._terms.answer_seconds)
        answer_ms = max(lock_ms, round(answer_seconds * 1000)) + round(_GRACE_SECONDS * 1000)
        link.execute(
            f"BEGIN; SET LOCAL lock_timeout = {lock_ms}; SET LOCAL statement_timeout = {answer_ms};"
            f"SET LOCAL idle_in_transaction_session_timeout = {_IDLE_MS}".encode()
        )

    def _prepare(self, link: Link) -> None:
        encoding = link.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            problem = f"its encoding {encoding} cannot hold every text"
            advice = "Use a database that was created with ENCODING 'UTF8'."
            raise errors.StoreUnsafe(store=self._shown, reason=problem, suggestion=advice)
        if self._version(link) == len(self._steps):
            return
        self._begin(link)
        link.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_ADVISORY,))
        for step in self._steps[self._version(link) :]:
            link.execute(step.encode())
        link.execute("UPDATE tool_store SET version = %s", (len(self._steps),))
        if not self._terms.rehearse:
            link.commit()

    def _version(self, link: Link) -> int:
        """Asked again by who waited for the lock of the schema: of the table itself, because the cached answer to
        `to_regclass` is still the one from before."""
        asked = "SELECT count(*) FROM pg_class WHERE relname = 'tool_store' AND pg_table_is_visible(oid)"
        if link.execute(asked).fetchone() == (0,):
            return 0
        ((version,),) = link.execute("SELECT version FROM tool_store").fetchall()
        if version > len(self._steps):
            raise errors.StateTooNew(store=self._shown, found=version, known=len(self._steps))
        return int(version)

    def _leave(self) -> None:
        """Out of the transaction, whatever happened in it."""
        if (link := self.current()) is not None:
            try:
                link.rollback()
            except psycopg.Error:  # in the middle of something, or lost
                link.close()

    def _our_error(self, error: psycopg.Error, *, is_certain: bool) -> ToolError:
        self._terms.signals.check()
        first_line, reason = redact(str(error).partition("\n")[0]), _reason(error)
        if isinstance(error, said.LockNotAvailable):
            return self._terms.busy(self._shown)
        if isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None:
            return no_store(self._url, f"{self._shown} is not the URL of a PostgreSQL server")
        if not _is_lost(error) and not (error.sqlstate or "").startswith(_UNDONE):
            return _REFUSALS.get(error.sqlstate or "", IoFailure)(self._shown, first_line)
        if reason == "auth":
            return errors.StoreAuthFailed(store=self._shown, reason="the user or password is not accepted")
        if reason == "none":
            return no_store(self._url, f"there is no database {self._shown}", "Create it, or name another.")
        is_known = is_certain or not _is_lost(error)
        unavailable = errors.StoreUnavailable if is_known else errors.OutcomeUnknown
        return unavailable(store=self._shown, reason=reason)


@cache
def _placed(statement: str) -> Any:
    """`:name`, as this driver writes it."""
    return re.sub(r"(?<!:):([a-z]\w*)", r"%(\1)s", statement)


def _is_lost(error: psycopg.Error) -> bool:
    """The connection, or the server behind it, and not a statement that failed."""
    is_about_it = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return is_about_it and (error.sqlstate or "08").startswith(_LOST)


def _reason(error: psycopg.Error) -> str:
    found = (reason for words, reason in _REASONS.items() if re.search(words, str(error), re.IGNORECASE))
    return next(found, "no connection")
