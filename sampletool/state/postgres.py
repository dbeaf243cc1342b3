"""A store on a PostgreSQL server: for users on many machines.

**A verb is one transaction.** If the connection breaks before COMMIT was sent, nothing has
happened, so the transaction is repeated on a new connection. If it breaks afterwards, the
change may have been made. Then the transaction is repeated only if that is harmless (see
exchange.py).

**A wait for the server can be interrupted.** psycopg waits for each piece of a reply. `Link` looks
for a signal and at the deadline in between, and cancels on the server what it no longer waits for.

**Limits end with the transaction.** All settings are SET LOCAL, because a pooler such as pgbouncer
gives the same connection to other clients afterwards.

With asynchronous standbys, a failover can lose the last writes.
"""

import logging
import re
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import cache
from typing import Any, Literal

import psycopg
from psycopg import errors as driver_errors

from ..kit.contract.errors import ToolError
from ..kit.contract.file_errors import PathError
from ..kit.contract.text import redact
from ..kit.program import PACKAGE
from . import errors, sql_verbs
from .exchange import NoReply, Request, Watch, connect_in_thread, send
from .protocol import Health
from .retry_policy import RetryPolicy
from .sql import ServerDescription, SqlStore, T
from .sql_verbs import Session, schema_of_0_1, schema_of_0_2, schema_of_0_3
from .store import Write
from .store_url import invalid_store, shown_url, take_store_name

# Without a handler, Python would print psycopg's warnings to stderr.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

_NOW = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"

SCHEMA_STEPS = (
    "CREATE TABLE tool_store (version integer NOT NULL); INSERT INTO tool_store VALUES (0);"
    + schema_of_0_1(
        text='text COLLATE "C"',
        serial="bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    ),
    schema_of_0_2(now=_NOW, task_of_key="substr(key, 6)::jsonb ->> 0"),
    schema_of_0_3(),
)
"""The steps that lead from an empty database to the schema. Only append to them.

A store remembers how many of the steps it has been through.
"""

_ADVISORY_CLASS = 0x746F6F6C
"""The first half of the number of each advisory lock. It keeps ours apart from those of others."""

_GRACE_SECONDS = 0.5
"""How much earlier than the driver the server gives up, so that its own reason arrives."""

_CONNECT_MIN_SECONDS = 2
"""The shortest time limit for connecting that libpq accepts."""

_IDLE_MS = 2000
"""How long a client may be silent in a transaction.

Then the server ends the transaction and releases its locks. The client may be paused.
"""

_UNDONE_STATES = ("25P03", "57014", "40")
"""The SQLSTATEs, or their beginnings, of a transaction that the server has undone.

* 25P03: the client was silent for too long.
* 57014: a statement took too long.
* 40: the transaction was in the way of others, for example in a deadlock.
"""

_LOST_STATES = ("57P", "08")
"""The beginnings of the SQLSTATEs of a connection that is lost.

* 57P: the server starts or shuts down.
* 08: the connection has failed.
"""

_REFUSALS: dict[str, type[PathError]] = {
    "42501": errors.StoreForbidden,
    "25006": errors.StoreReadOnly,
    "53100": errors.StoreFull,
}
"""The error for a SQLSTATE: a missing privilege, a read-only server, a full disk."""

_NO_SUCH_USER = r"role .* (does not exist|is not permitted)"
_WRONG_LOGIN = re.compile(
    rf"authentication failed|no password|no pg_hba.conf entry|{_NO_SUCH_USER}",
    re.IGNORECASE,
)
_NO_SUCH_DATABASE = re.compile(r"database .* does not exist", re.IGNORECASE)

_PERMANENT_REASONS = {
    r"server does not support SSL": "the server does not offer TLS, which sslmode requires",
    r"certificate verify failed|certificate is not valid": (
        "the certificate of the server is not trusted, or belongs to another host"
    ),
    r"root certificate file .* does not exist|root.crt": "the file of sslrootcert does not exist",
    r"certificate file|private key file": "the file of sslcert or sslkey cannot be used",
    r"server certificate for .* does not match": "the certificate belongs to another host",
    r"invalid sslmode|sslmode value": "sslmode has an unknown value",
    r'invalid port|connection option "port"': "the port is not a number from 1 to 65535",
    r"invalid .* value": "an option of the URL has an invalid value",
}
"""Why connecting can never succeed, by a pattern of psycopg's text."""

_TEMPORARY_REASONS = {
    r"too many (clients|connections)|connection slots": "it has no free connection",
    r"timeout|timed out": "it did not reply in time",
    r"translate host name|name or service": "the name of its host is unknown",
    r"refused|no such file": "no server is listening there",
}
"""Why the server is unreachable now, by a pattern of psycopg's text.

The text itself is never shown. It has no code, and may quote a part of a badly escaped URL.
"""


class Link(psycopg.Connection[Any]):
    """A connection that keeps a deadline and notices signals."""

    now = _NOW
    for_update = "FOR UPDATE"
    skip_locked = "FOR UPDATE SKIP LOCKED"

    is_repetition = False
    watch: Watch | None = None
    """The limits of the current exchange. None while the driver still connects."""

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Wait for the server. psycopg calls this for each reply, with a generator."""
        return super().wait(self._watched(gen), interval, timeout)

    def _watched(self, exchange: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run psycopg's generator step by step, and look for the end of the wait in between.

        The generator `exchange` sends a statement and reads the reply. Whenever it has to wait for
        the socket, it yields the event that it needs: the socket is readable or writable. psycopg's
        `wait` waits for this event, and sends it back. After `interval` seconds without an event,
        it sends 0. At the end, the generator returns the reply.

        psycopg's `wait` gets this generator instead, which passes on what each sends to the other.
        Raise OperationalError if the deadline has passed or a signal has arrived.
        """
        try:
            needed_event = next(exchange)
            while True:
                event = yield needed_event
                # If the reply is complete, this raises StopIteration. So a complete reply is
                # returned even if the deadline has passed.
                needed_event = exchange.send(event)
                # Look after each event, and not only after a pause: the server may send bytes
                # without a pause.
                self._cancel_if_over()
        except StopIteration as end:
            return end.value

    def _cancel_if_over(self) -> None:
        """If the deadline has passed or a signal has arrived, cancel the statement on the server.

        Raise OperationalError then.
        """
        if self.watch is None or not self.watch.is_over():
            return
        with suppress(psycopg.Error):
            self.cancel_safe(timeout=_GRACE_SECONDS)
        raise psycopg.OperationalError("timeout")

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Return the rows that a statement finds."""
        cursor = self.execute(_in_driver_syntax(statement), values)
        if cursor.description is None:
            return []
        return cursor.fetchall()

    def execute_each(
        self,
        statement: str,
        values: list[dict[str, Any]],
    ) -> list[dict[str, Any]]:
        """Execute a statement for each of the values. Return those with which it changed a row."""
        if not values:
            return []
        cursor = self.cursor()
        if len(values) == 1:
            # executemany() would start a pipeline, which costs as much as the statement.
            cursor.execute(_in_driver_syntax(statement), values[0])
        else:
            cursor.executemany(_in_driver_syntax(statement), values, returning=True)
        values_with_effect = []
        for row in values:
            if cursor.rowcount > 0:
                values_with_effect.append(row)
            # Go to the result of the next row. After the last one, this does nothing.
            cursor.nextset()
        return values_with_effect

    def lock_name(self, name: str) -> None:
        """Wait until no other transaction has locked this name, and lock it for this one."""
        self.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_ADVISORY_CLASS, name))


_Tables = Literal["created", "required", "optional"]
"""What an attempt does if the database has no tables.

* "created": it creates them.
* "required": it raises _NoTables.
* "optional": nothing, because it needs no tables.
"""


class _NoTables(Exception):
    """The database has no tables yet, and this attempt only reads."""


class PostgresStore(SqlStore):
    """A store in one schema of a PostgreSQL database."""

    def __init__(
        self,
        url: str,
        policy: RetryPolicy,
        schema_steps: tuple[str, ...] = SCHEMA_STEPS,
    ) -> None:
        """Keep the arguments: the store connects when it is first used."""
        super().__init__(policy, schema_steps)
        self._shown_url = shown_url(url)
        # Several stores can share a database if each has a schema of its own.
        self._url, self._schema_name = take_store_name(url, "schema")
        self._watch = Watch(policy.signals)
        self._has_schema = False
        """Whether the database is known to have the tables of the current version.

        A dry run creates them in a transaction that is undone, so this stays False.
        """

    def transact(self, body: Callable[[Session], T], write: Write | None = None) -> T:
        """Return what `body` returns, and commit. If it raises an error, undo everything."""
        if write is None:
            return self._send(Request(store=self._shown_url), body, "required")
        request = Request(
            store=self._shown_url,
            change=write.describe(),
            repetition=write.repetition,
        )
        return self._send(request, body, "created")

    def read(self, verb: str, arguments: dict[str, Any]) -> Any:
        """Return what the verb reads. A database without tables reads as an empty store."""
        try:
            return super().read(verb, arguments)
        except _NoTables:
            return sql_verbs.READ_FROM_EMPTY_STORE[verb]

    def describe(self) -> ServerDescription:
        """Return the version of the server, and the settings that decide whether it keeps data.

        If there are tables, this fails if this user may not change them.
        """
        settings = dict(self._send(Request(store=self._shown_url), _read_settings, "optional"))
        version = settings.pop("server_version")
        # Each of the other settings protects data, so it should be on.
        problems = [f"{name} is off" for name, setting in settings.items() if setting == "off"]
        try:
            self.look(_update_nothing)
        except _NoTables:
            settings["tables"] = "do not exist yet. The first write creates them"
        return ServerDescription(
            server=f"PostgreSQL {version} ({self._shown_url})",
            problems=problems,
            settings=settings,
        )

    def health(self) -> Health:
        """Return the state of the server."""
        description = self.describe()
        request = Request(store=self._shown_url)
        rows = self._send(request, _read_clock, "optional")
        return description.to_health(sql_verbs.single_value(rows))

    def _send(self, request: Request, body: Callable[[Session], T], tables: _Tables) -> T:
        """Run `body` in a transaction, and return its result.

        If the connection breaks, repeat the transaction, unless that could make the change twice.
        """

        def attempt(give_up_at: float, is_repetition: bool) -> T:
            return self._attempt(body, give_up_at, tables=tables, is_repetition=is_repetition)

        return send(request, self._policy, attempt)

    def _attempt(
        self,
        body: Callable[[Session], T],
        give_up_at: float,
        *,
        tables: _Tables,
        is_repetition: bool,
    ) -> T:
        """Make one attempt at a transaction. Raise NoReply if the connection is lost.

        `is_repetition` is whether an earlier attempt may have succeeded: its reply was lost.
        """
        # Before COMMIT is sent, a lost connection undoes everything. Afterwards, the server may
        # have made the change.
        is_commit_sent = False
        try:
            # Wait longer than the server does (see `_begin`), so that its own reason arrives.
            link = self._connected(give_up_at + 2 * _GRACE_SECONDS)
            link.is_repetition = is_repetition
            self._begin_with_tables(link, tables)
            result = body(link)
            if not self._policy.dry_run:
                is_commit_sent = True
                link.commit()
            return result
        except (psycopg.Error, TimeoutError) as error:
            raise self._error_to_raise(error, was_sent=is_commit_sent) from None
        except UnicodeError:
            problem = f"{self._shown_url} names a host that cannot exist"
            raise invalid_store(self._url, problem) from None
        finally:
            self._leave_transaction()

    def _connected(self, give_up_at: float) -> Link:
        """Return the open connection of this process, or a new one. Give up at this moment."""
        self._watch.give_up_at = give_up_at
        link: Link | None = self.current_connection()
        if link is None or link.closed:
            link = self._connect(give_up_at)
            self._connection = link
            self._has_schema = False
        link.watch = self._watch
        return link

    def _connect(self, give_up_at: float) -> Link:
        """Return a new connection.

        Raise TimeoutError if that takes too long or a signal arrives, and psycopg.Error if it
        fails.
        """
        seconds_left = round(give_up_at - time.monotonic())
        # libpq takes 0 for no limit at all. If less time is left than it accepts,
        # connect_in_thread() gives up earlier.
        connect_seconds = max(_CONNECT_MIN_SECONDS, seconds_left)

        def connect() -> Link:
            # * client_encoding: otherwise, PGCLIENTENCODING in the environment would decide.
            # * autocommit: the driver starts no transactions, because `_begin` does.
            # * prepare_threshold: prepare no statements. A pooler such as pgbouncer could give the
            #   next transaction another connection to the server, which does not know them.
            return Link.connect(
                self._url,
                connect_timeout=connect_seconds,
                application_name=PACKAGE,
                client_encoding="utf8",
                autocommit=True,
                prepare_threshold=None,
            )

        # In a thread: looking up a host name cannot be interrupted.
        return connect_in_thread(connect, self._watch, Link.close)

    def _begin_with_tables(self, link: Link, tables: _Tables) -> None:
        """Start a transaction. First create or upgrade the tables if that is necessary."""
        if tables == "optional":
            self._begin(link)
            return
        if not self._has_schema:
            self._prepare(link, may_create=tables == "created")
        self._begin_if_not_newer(link)

    def _begin(self, link: Link, *more_statements: str) -> psycopg.Cursor[Any]:
        """Start a transaction with time limits. All of it is one message, so one round trip.

        If a limit is exceeded, the server raises the error, and undoes the transaction. A statement
        gets more time than a lock, so that the error says what it waited for.
        """
        lock_seconds = self._policy.seconds_from_now()
        statement_seconds = self._policy.seconds_from_now(self._policy.min_server_seconds)
        # At least 1 ms: PostgreSQL takes 0 for no limit at all.
        lock_ms = max(1, round(lock_seconds * 1000))
        statement_ms = round((statement_seconds + _GRACE_SECONDS) * 1000)
        statements = [
            "BEGIN",
            f"SET LOCAL lock_timeout = {lock_ms}",
            f"SET LOCAL statement_timeout = {statement_ms}",
            f"SET LOCAL idle_in_transaction_session_timeout = {_IDLE_MS}",
        ]
        if self._schema_name is not None:
            statements.append(f'SET LOCAL search_path = "{self._schema_name}"')
        statements += more_statements
        return link.execute(";".join(statements).encode())

    def _begin_if_not_newer(self, link: Link) -> None:
        """Start a transaction. Raise StateTooNew if a newer client has upgraded the tables."""
        # On the server, a SELECT holds a shared lock of its table until the transaction ends.
        # `_upgrade` waits for that, so the version cannot change while the transaction runs.
        cursor = self._begin(link, "SELECT version FROM tool_store")
        _go_to_last_result(cursor)
        version = sql_verbs.single_value(cursor.fetchall())
        self._refuse_newer(version)

    def _prepare(self, link: Link, *, may_create: bool) -> None:
        """Create the tables, or upgrade them.

        A read and a dry run change nothing: they create the tables in a transaction that is undone.
        To read from a database without tables, raise _NoTables instead. So a user who may not
        create tables can read.
        """
        encoding = link.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise errors.StoreUnsafe(
                store=self._shown_url,
                reason=f"its encoding {encoding} cannot represent every text",
                suggestion="Use a database that was created with ENCODING 'UTF8'.",
            )
        self._begin(link)
        version = self._read_version(link)
        if version == len(self._schema_steps):
            link.rollback()
            self._has_schema = True
            return
        if version == 0 and not may_create:
            raise _NoTables
        self._upgrade(link)
        may_commit = may_create and not self._policy.dry_run
        if may_commit:
            link.commit()
            self._has_schema = True
        # Otherwise the transaction stays open. The next BEGIN in it does nothing, and the end of
        # the attempt undoes it.

    def _upgrade(self, link: Link) -> None:
        """Execute the schema steps that are missing, in the current transaction."""
        # One client at a time creates or upgrades the tables. Locks of names use the numbers of
        # hashtext(), and 0 is the number of this lock.
        link.execute("SELECT pg_advisory_xact_lock(%s, 0)", (_ADVISORY_CLASS,))
        if self._schema_name is not None:
            # As bytes, because the types of psycopg allow only literals as text.
            link.execute(f'CREATE SCHEMA IF NOT EXISTS "{self._schema_name}"'.encode())
        version = self._read_version(link)
        if version > 0:
            # Wait until no transaction uses the old tables. Later transactions wait for this one.
            link.execute("LOCK TABLE tool_store IN ACCESS EXCLUSIVE MODE")
            # Another client may have upgraded the tables during the wait.
            version = self._read_version(link)
        for step in self._schema_steps[version:]:
            link.execute(step.encode())
        link.execute("UPDATE tool_store SET version = %s", (len(self._schema_steps),))

    def _read_version(self, link: Link) -> int:
        """Return how many schema steps the database has been through: 0 if it has no tables.

        Raise StateTooNew if there are more than this version knows.
        """
        # Not to_regclass(): after waiting for the lock of the schema, it would still return its
        # cached result from before.
        rows = link.rows(
            """
            SELECT count(*) FROM pg_class
            WHERE relname = 'tool_store' AND pg_table_is_visible(oid)
            """
        )
        has_tables = sql_verbs.single_value(rows) > 0
        if not has_tables:
            return 0
        version = sql_verbs.single_value(link.rows("SELECT version FROM tool_store"))
        self._refuse_newer(version)
        return int(version)

    def _refuse_newer(self, version: int) -> None:
        """Raise StateTooNew if the tables have more schema steps than this version knows."""
        if version > len(self._schema_steps):
            raise errors.StateTooNew(
                store=self._shown_url,
                found=version,
                known=len(self._schema_steps),
            )

    def _leave_transaction(self) -> None:
        """End the transaction, whatever happened in it. After a commit, this does nothing."""
        link = self.current_connection()
        if link is None:
            return
        try:
            link.rollback()
        except psycopg.Error:
            # The connection is lost, or in the middle of something.
            link.close()

    def _error_to_raise(
        self,
        error: psycopg.Error | TimeoutError,
        *,
        was_sent: bool,
    ) -> Exception:
        """Return the error to raise instead of an error of the driver: NoReply or a ToolError.

        NoReply means that another attempt may succeed. `was_sent` is whether COMMIT was sent, so
        that the server may have made the change.
        """
        if isinstance(error, TimeoutError):
            return NoReply("it did not reply in time", was_sent=was_sent)
        if _is_url_refused(error):
            problem = f"{self._shown_url} is not the URL of a PostgreSQL server"
            return invalid_store(self._url, problem)
        if not _is_connection_lost(error):
            return self._statement_error(error)
        permanent_error = self._permanent_error(error)
        if permanent_error is not None:
            return permanent_error
        return NoReply(_temporary_reason(error), was_sent=was_sent)

    def _statement_error(self, error: psycopg.Error) -> Exception:
        """Return what to raise if the server has replied that it did not execute a statement."""
        if isinstance(error, driver_errors.LockNotAvailable):
            return self._policy.busy_error(self._shown_url)
        # A few errors of the driver itself have no SQLSTATE. They are failures, too.
        sqlstate = str(error.sqlstate)
        if sqlstate.startswith(_UNDONE_STATES):
            # The server says that it has made no change. So this is certain, even if COMMIT was
            # sent, and another attempt cannot make the change twice.
            return NoReply(_temporary_reason(error), was_sent=False)
        # Later lines may quote values of the caller.
        first_line = redact(str(error).partition("\n")[0])
        error_class = _REFUSALS.get(sqlstate, errors.StoreFailure)
        return error_class(self._shown_url, first_line)

    def _permanent_error(self, error: psycopg.Error) -> ToolError | None:
        """Return the error for a mistake that a retry cannot correct. None if it is another error.

        A connection that fails has no SQLSTATE, so only the text tells what is wrong.
        """
        text = str(error)
        if _WRONG_LOGIN.search(text):
            reason = "the user or password is not accepted"
            return errors.StoreAuthFailed(store=self._shown_url, reason=reason)
        if _NO_SUCH_DATABASE.search(text):
            problem = f"there is no database {self._shown_url}"
            return invalid_store(self._url, problem, "Create it, or name another one.")
        for pattern, reason in _PERMANENT_REASONS.items():
            if re.search(pattern, text, re.IGNORECASE):
                return errors.StoreMisconfigured(store=self._shown_url, reason=reason)
        return None


def _go_to_last_result(cursor: psycopg.Cursor[Any]) -> None:
    """Let the cursor return the rows of the last statement of a message.

    Each statement of the message has a result of its own. At first, the cursor is at the first one.
    """
    while cursor.nextset():
        pass


def _read_clock(db: Session) -> list[Any]:
    """Return one row with the time of the server, in milliseconds since 1970."""
    return db.rows(f"SELECT {db.now}")


def _update_nothing(db: Session) -> None:
    """Fail on a server that does not accept changes, and without the privilege to make them."""
    db.rows("UPDATE tool_floor SET version = version")


def _read_settings(db: Session) -> list[Any]:
    """Return rows of the name and the value of a setting: the version, and what protects data."""
    return db.rows(
        """
        SELECT name, setting FROM pg_settings WHERE name IN
            ('fsync', 'synchronous_commit', 'full_page_writes', 'server_version')
        """
    )


@cache
def _in_driver_syntax(statement: str) -> Any:
    """Return the statement with `%(name)s` instead of `:name`. A cast, `::text`, stays."""
    return re.sub(r"(?<!:):([a-z]\w*)", r"%(\1)s", statement)


def _is_url_refused(error: psycopg.Error) -> bool:
    """Return whether the driver has refused the URL, before it has asked any server."""
    return isinstance(error, psycopg.ProgrammingError) and error.sqlstate is None


def _is_connection_lost(error: psycopg.Error) -> bool:
    """Return whether an error is about the connection or the server, and not about a statement."""
    if not isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return False
    # Without a SQLSTATE, the error is not from the server. So the driver could not reach it.
    return error.sqlstate is None or error.sqlstate.startswith(_LOST_STATES)


def _temporary_reason(error: psycopg.Error) -> str:
    """Return why the server is unreachable now, in our own words."""
    for pattern, reason in _TEMPORARY_REASONS.items():
        if re.search(pattern, str(error), re.IGNORECASE):
            return reason
    return "no connection"
