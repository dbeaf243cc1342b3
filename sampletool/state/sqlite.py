"""A store in one SQLite file: the default. It needs no server, and any process can use it.

**One writer at a time, in order.** Each write is a BEGIN IMMEDIATE while this process holds our own
lock, which is next to the file. SQLite's busy handler alone starved three of four writers (1800, 1,
1 and 1 turns). And a transaction that starts with reading fails at once if another one writes
meanwhile, however long its timeout is.

**A write-ahead log, flushed at each commit** (synchronous=FULL). This costs one flush; a rollback
journal costs five. SQLite 3.7.0 to 3.51.2 can corrupt the log if one connection restarts it (a
checkpoint) while another commits. Here, both happen in COMMIT, while our lock is held. The only
other checkpoint is that of the last connection that closes, and SQLite has the file to itself then.

**One connection for each process.** A forked process opens its own.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..kit.contract.errors import ToolError
from ..kit.contract.file_errors import IoFailure, NoSpace, PermissionDenied, ReadOnly
from ..kit.safety.errors import UnsafePath
from .errors import StateTooNew
from .retry_policy import RetryPolicy
from .sql import ServerDescription, SqlStore, T
from .sql_verbs import Session, schema_of_0_1, schema_of_0_2, schema_of_0_3
from .store import Write

_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS bigint)"

SCHEMA_STEPS = (
    schema_of_0_1(text="text", serial="integer PRIMARY KEY AUTOINCREMENT"),
    schema_of_0_2(now=_NOW, task_of_key="json_extract(substr(key, 6), '$[0]')"),
    schema_of_0_3(),
)
"""The steps that lead from an empty file to the schema. Only append to them.

A file remembers how many of the steps it has been through. A step is divided into statements at
each semicolon. So it must not contain one inside of a statement, as a trigger would.
"""

_BUSY_SECONDS = 0.05
"""How long SQLite waits for a lock of its own before we look for a signal and at the deadline."""

_LOG_PAGES = 250
"""The length of the log at which it starts again.

Writing over existing pages is flushed faster than letting the file grow.
"""

_APPLICATION_ID = 0x746F6F6C
"""A number that marks our files, so that no other program's database is ever changed."""

_SYNCHRONOUS_NAMES = ("off", "normal", "full", "extra")
"""The names of the numbers that `PRAGMA synchronous` returns, from 0."""

_PERMISSION_ERRORS = ("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")


class Connection(sqlite3.Connection):
    """A connection as sql_verbs needs it. Our lock makes all other locks unnecessary."""

    now = _NOW
    for_update = ""
    skip_locked = ""
    is_repetition = False

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Return the rows that a statement finds."""
        return self.execute(statement, values).fetchall()

    def execute_each(
        self,
        statement: str,
        values: list[dict[str, Any]],
    ) -> list[dict[str, Any]]:
        """Execute a statement for each of the values. Return those with which it changed a row."""
        values_with_effect = []
        for row in values:
            if self.execute(statement, row).rowcount > 0:
                values_with_effect.append(row)
        return values_with_effect

    def lock_name(self, name: str) -> None:
        """Do nothing: no other transaction writes at the same time."""


def connect_to_memory() -> Connection:
    """Return a connection to a new, empty database in memory."""
    return sqlite3.connect(
        ":memory:",
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )


class SqliteStore(SqlStore):
    """A store in a file."""

    def __init__(
        self,
        path: Path,
        policy: RetryPolicy,
        schema_steps: tuple[str, ...] = SCHEMA_STEPS,
        prepare_directory: Callable[[], object] = lambda: None,
    ) -> None:
        """Keep the arguments: the file is opened when the store is first used.

        `prepare_directory` is called before the file is created.
        """
        super().__init__(policy, schema_steps)
        self._path = path
        # The lock is next to the file. So it is the same lock however a caller writes the path.
        self._lock_path = path.with_name(f".{path.name}.lock")
        self._prepare_directory = prepare_directory
        self._opened_file: os.stat_result | None = None
        """The file that `_connection` has opened. None before that, or if it is in memory."""

    def look(self, body: Callable[[Session], T]) -> T:
        """Return what `body` returns. It changes no file.

        If there is no file yet, `body` sees an empty store. If the file has an older schema, `body`
        sees a copy in memory with the current one.
        """
        with self._our_errors():
            db = self._open()
            try:
                return self._retry_while_busy(lambda: body(db))
            finally:
                if db is not self._connection:
                    db.close()

    def transact(self, body: Callable[[Session], T], write: Write | None = None) -> T:
        """Return what `body` returns. By then, the change is committed and on the disk.

        A local file never loses the connection, so nothing is repeated, and `write` is not used.
        """
        if self._policy.dry_run:
            return self.look(body)
        is_first_write = self._connection is None
        if is_first_write:
            self._prepare_directory()
        lock_name = f"store {self._path.name}"
        # Only the first write leaves a record of the holder in the lock file. Later ones take
        # microseconds, and the record would take longer than the write.
        with (
            self._policy.hold_lock(self._lock_path, lock_name, is_first_write),
            self._our_errors(),
        ):
            db = self._open(to_write=True)
            with self._transaction(db):
                # Another process may have upgraded the file since it was opened.
                self._read_version(db)
                return body(db)

    def describe(self) -> ServerDescription:
        """Return the settings of the file. If there is none, return whether it can be created."""
        server = f"SQLite {sqlite3.sqlite_version} ({self._path})"
        if not self._path.exists():
            return ServerDescription(
                server=server,
                problems=self._problems_of_directory(),
                settings={"file": "does not exist yet. The first write creates it"},
            )
        # A write transaction that changes nothing. A read would not find out that the file cannot
        # be written.
        inspection = self.transact(_inspect)
        return ServerDescription(
            server=server,
            problems=inspection.problems,
            settings={
                "journal_mode": inspection.journal_mode,
                "synchronous": inspection.synchronous,
            },
        )

    def _problems_of_directory(self) -> list[str]:
        """Return why the file cannot be created. The list is empty if it can be."""
        directory = next(path for path in self._path.parents if path.is_dir())
        if os.access(directory, os.W_OK | os.X_OK, effective_ids=True):
            return []
        return [f"it cannot be created in {directory}, which is not writable"]

    @contextmanager
    def _transaction(self, db: Connection) -> Iterator[None]:
        """Commit what the block does. If it raises an error, undo it."""
        # IMMEDIATE takes SQLite's write lock before the block reads. Without it, another process
        # could write between a read and the first write, and SQLite would refuse this write.
        self._retry_while_busy(lambda: db.execute("BEGIN IMMEDIATE"))
        try:
            yield
            self._retry_while_busy(lambda: db.execute("COMMIT"))
        finally:
            # After an error, the transaction is still open.
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _open(self, *, to_write: bool = False) -> Connection:
        """Return a connection to the file. To read, it can be one to a copy in memory."""
        open_connection: Connection | None = self.current_connection()
        if open_connection is not None:
            if not self._policy.dry_run:
                self._check_file_is_same()
            return open_connection
        if to_write:
            return self._open_to_write()
        return self._open_to_read()

    def _open_to_write(self) -> Connection:
        """Open the file, and keep the connection. First create or upgrade the file if necessary."""
        _create_file(self._path)
        with self._new_connection() as db:
            is_old = self._is_old(db)
            self._retry_while_busy(lambda: db.execute("PRAGMA journal_mode = WAL"))
            if is_old:
                self._upgrade(db)
            self._keep(db)
            return db

    def _open_to_read(self) -> Connection:
        """Open the file, and keep the connection. Reading must not create or upgrade the file.

        So if the file is missing or older, return a connection to a copy in memory with the current
        schema: another copy each time. A dry run gets a copy, too, to which its verbs write.
        """
        if not os.path.lexists(self._path):
            return self._copy_to_memory(None)
        with self._new_connection() as db:
            if self._is_old(db) or self._policy.dry_run:
                return self._copy_to_memory(db)
            self._keep(db)
            return db

    @contextmanager
    def _new_connection(self) -> Iterator[Connection]:
        """Yield a connection to the file, which must exist. Close it unless the block keeps it."""
        _refuse_unsafe_file(self._path)
        db = self._retry_while_busy(self._connect)
        try:
            yield db
        finally:
            if db is not self._connection:
                db.close()

    def _keep(self, db: Connection) -> None:
        """Use this connection for all later verbs."""
        self._connection = db
        self._opened_file = os.stat(self._path)

    def _is_old(self, db: Connection) -> bool:
        """Return whether schema steps are missing in the file."""
        version = self._retry_while_busy(lambda: self._read_version(db))
        return version < len(self._schema_steps)

    def _copy_to_memory(self, source: Connection | None) -> Connection:
        """Return a copy of the store with the current schema. Without a source, it is empty.

        A dry run keeps the copy, so that its verbs see the changes of each other.
        """
        copy = connect_to_memory()
        if source is not None:
            self._retry_while_busy(lambda: source.backup(copy))
        if self._is_old(copy):
            self._upgrade(copy)
        if self._policy.dry_run:
            self._connection = copy
        return copy

    def _connect(self) -> Connection:
        """Return a connection to the file, which must exist, with the settings that we need."""
        uri = f"{self._path.absolute().as_uri()}?mode=rw"
        db = sqlite3.connect(
            uri,
            timeout=_BUSY_SECONDS,
            uri=True,
            isolation_level=None,
            factory=Connection,
        )
        try:
            db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA fullfsync = ON")
            (journal_mode,) = db.execute("PRAGMA journal_mode").fetchone()
            if journal_mode != "wal":
                # Some file systems cannot have a log. TRUNCATE flushes the end of the rollback
                # journal as well. Otherwise, a power failure could bring an old journal back.
                db.execute("PRAGMA journal_mode = TRUNCATE")
        except BaseException:
            db.close()
            raise
        return db

    def _read_version(self, db: Connection) -> int:
        """Return how many schema steps the file has been through.

        Raise StateTooNew if there are more than this version knows, and UnsafePath if the file
        belongs to another program.
        """
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if _belongs_to_another_program(db):
            raise UnsafePath(str(self._path), "it is a database of another program")
        if version > len(self._schema_steps):
            raise StateTooNew(
                store=str(self._path),
                found=version,
                known=len(self._schema_steps),
            )
        return int(version)

    def _upgrade(self, db: Connection) -> None:
        """Execute all schema steps that are missing, or none of them."""
        with self._transaction(db):
            # Read the version again, in the transaction: another process may have been faster.
            version = self._read_version(db)
            for step in self._schema_steps[version:]:
                # Not executescript(): it would commit the transaction first.
                for statement in step.split(";"):
                    if statement.strip():
                        db.execute(statement)
            db.execute(f"PRAGMA user_version = {len(self._schema_steps)}")
            db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")

    def _check_file_is_same(self) -> None:
        """Raise IoFailure if the file that is open is no longer at its path.

        SQLite does not notice that. It would continue to write into a file without a name.
        """
        assert self._opened_file is not None
        try:
            is_same = os.path.samestat(os.stat(self._path), self._opened_file)
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise IoFailure(str(self._path), "it was removed or replaced while it was open")

    def _retry_while_busy(self, attempt: Callable[[], T]) -> T:
        """Return `attempt()`. While the database is locked, repeat it.

        This is about SQLite's own locks: a reader meets a commit, or a commit meets a reader.
        Raise StoreBusy at the deadline of this wait, and Interrupted or DeadlineExceeded if the
        process has to stop.
        """
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not _is_busy(error):
                raise
        # The wait begins now. The loop has no pause of its own: SQLite waits for up to
        # _BUSY_SECONDS before it refuses an attempt.
        deadline = time.monotonic() + self._policy.seconds_from_now()
        while True:
            self._policy.signals.check()
            if time.monotonic() >= deadline:
                raise self._policy.busy_error(self._path.name)
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                if not _is_busy(error):
                    raise

    @contextmanager
    def _our_errors(self) -> Iterator[None]:
        """Raise an error of this program instead of one of SQLite."""
        try:
            yield
        # A damaged schema can contain names that are not UTF-8.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise _to_our_error(error, str(self._path)) from error


class _Inspection(NamedTuple):
    """What a transaction can find out about the file."""

    problems: list[str]
    journal_mode: str
    synchronous: str


def _inspect(db: Session) -> _Inspection:
    findings = db.rows("PRAGMA integrity_check")
    ((journal_mode,),) = db.rows("PRAGMA journal_mode")
    ((synchronous,),) = db.rows("PRAGMA synchronous")
    return _Inspection(
        # A database without problems has one finding: ok.
        problems=[finding for (finding,) in findings if finding != "ok"],
        journal_mode=journal_mode,
        synchronous=_SYNCHRONOUS_NAMES[synchronous],
    )


def _belongs_to_another_program(db: Connection) -> bool:
    """Return whether this is a database that no version of this program has created.

    A database without tables and without a mark is a new file: this program may use it.
    """
    (mark,) = db.execute("PRAGMA application_id").fetchone()
    if mark == _APPLICATION_ID:
        return False
    has_tables = db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    return mark != 0 or has_tables


def _create_file(path: Path) -> None:
    """Create an empty file, which is an empty store. If there is a file, leave it alone.

    O_EXCL: an existing file must not even be opened. Closing it would drop the locks that SQLite
    has on it for another store of this process. Then the next process that closes the file believes
    it is the last one, and deletes the log that this process continues to write.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _refuse_unsafe_file(path: Path) -> None:
    """Raise UnsafePath if the path does not lead to a regular file of this user with one name."""
    # lstat: another user could have planted a link, and so choose the file that we write to.
    status = os.lstat(path)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
        raise UnsafePath(str(path), "the store must be a regular file that belongs to you")
    if status.st_nlink > 1:
        problem = (
            "it has another name (a hard link). "
            "After a crash, SQLite looks for its journal under one of the names only"
        )  # fmt: skip
        raise UnsafePath(str(path), problem)


def _to_our_error(error: Exception, path: str) -> ToolError:
    """Return the error of this program for one of SQLite."""
    name = _error_name(error)
    if name == "SQLITE_FULL":
        return NoSpace(path)
    if name.startswith("SQLITE_READONLY"):
        return ReadOnly(path)
    if name.startswith(_PERMISSION_ERRORS):
        return PermissionDenied(path, "it cannot be opened")
    return IoFailure(path, str(error))


def _is_busy(error: sqlite3.OperationalError) -> bool:
    """Return whether another connection has locked the database, so that an attempt may succeed."""
    return _error_name(error).startswith("SQLITE_BUSY")


def _error_name(error: Exception) -> str:
    """Return SQLite's name of an error, such as SQLITE_BUSY. A few errors have none: ""."""
    return getattr(error, "sqlite_errorname", "")
