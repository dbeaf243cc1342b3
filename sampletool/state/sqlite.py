"""A store in one SQLite file: the embedded default. Nothing to set up, safe between the processes of one machine.

Every write is a BEGIN IMMEDIATE under our own fair lock, held until after COMMIT: SQLite's own busy handler starved
three of four writers (1800/1/1/1 turns), and a read that turns into a write fails at once whatever the timeout.
A write-ahead log with synchronous=FULL: one flush for a commit, where a rollback journal takes five. Versions 3.7.0 to
3.51.2 can corrupt a log that begins again (a checkpoint) while another connection commits. Here both happen in COMMIT,
under the lock; the checkpoint when the last connection closes happens only while SQLite has the file to itself.
One connection for each process: a fork opens its own.
"""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ..kit.contract.errors import ToolError
from ..kit.contract.file_errors import IoFailure, NoSpace, PermissionDenied, ReadOnly
from ..kit.safety.errors import UnsafePath
from .errors import StateTooNew
from .retry_policy import RetryPolicy
from .sql import SqlStore, T
from .sql_verbs import Session, schema, schema_of_0_2

_NOW = "CAST((julianday('now') - 2440587.5) * 86400000 AS bigint)"
STEPS = (
    schema(text="text", serial="integer PRIMARY KEY AUTOINCREMENT"),
    schema_of_0_2(now=_NOW, task_of_key="json_extract(substr(key, 6), '$[0]')"),
)
"""The schema, as the steps that lead to it: a file remembers how many it has been through. Only ever append."""

_BUSY_SECONDS = 0.05
"""How long SQLite itself may wait before we look whether a signal or the deadline has come."""
_LOG_PAGES = 250
"""When the log begins again: to write over what is there is flushed faster than to make the file grow."""
_OURS = 0x746F6F6C
"""Marks our files (`file` shows it), so that nobody else's database is ever migrated."""

_ASKED = ("integrity_check", "journal_mode", "synchronous")
_LEVELS = ("off", "normal", "full", "extra")
_FORBIDDEN = ("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")


class Database(sqlite3.Connection):
    """Under the one lock there is nothing left to take. The clock is SQLite's own, not Python's."""

    now = _NOW
    locked = unclaimed = ""

    def rows(self, statement: str, **values: Any) -> list[Any]:
        return self.execute(statement, values).fetchall()

    def each(self, statement: str, values: list[dict[str, Any]]) -> list[int]:
        return [self.execute(statement, row).rowcount for row in values]

    def be_alone_with(self, name: str) -> None:
        """We are already."""


def in_memory() -> Database:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False, factory=Database)


class Sqlite(SqlStore):
    """See sql.py."""

    def __init__(
        self,
        path: Path,
        terms: RetryPolicy,
        steps: tuple[str, ...] = STEPS,
        prepare: Callable[[], object] = lambda: None,
    ) -> None:
        super().__init__(terms, steps)
        self._path = path
        self._lock = path.with_name(f".{path.name}.lock"), f"store {path.name}"
        """However the path is written, a file has one lock: it lies beside it."""
        self._prepare = prepare
        self._file: os.stat_result | None = None

    def look(self, body: Callable[[Session], T]) -> T:
        """Changes no file: what is not there yet reads as an empty store, what is older as it will be."""
        with self._translated():
            db = self._open()
            try:
                return self._patiently(lambda: body(db))
            finally:
                if db is not self._connection:
                    db.close()

    def transact(self, body: Callable[[Session], T], *, may_repeat: bool) -> T:
        """Committed, and on the disk, when it returns. A local file is never lost half-way, so nothing is repeated."""
        if self._terms.rehearse:
            return self.look(body)
        if is_first := self._connection is None:
            self._prepare()
        with self._terms.hold(*self._lock, is_first), self._translated():
            db = self._open(to_write=True)
            with self._transaction(db):
                return body(db)

    def describe(self) -> tuple[str, list[str], dict[str, str]]:
        """A file that is there is written to, but not changed; of one that is not, whether it could be made."""
        if self._path.exists():  # written to, not read: else nobody says that it cannot be written
            found, mode, level = self.transact(
                lambda db: [db.rows(f"PRAGMA {name}") for name in _ASKED], may_repeat=True
            )
            problems = [said for (said,) in found if said != "ok"]
            settings = {"journal_mode": mode[0][0], "synchronous": _LEVELS[level[0][0]]}
        else:
            directory = next(path for path in self._path.parents if path.is_dir())
            is_writable = os.access(directory, os.W_OK | os.X_OK, effective_ids=True)
            problems = [] if is_writable else [f"it cannot be created in {directory}, which is not writable"]
            settings = {"file": "not there yet; the first write makes it"}
        return f"SQLite {sqlite3.sqlite_version} ({self._path})", problems, settings

    @contextmanager
    def _transaction(self, db: Database) -> Iterator[None]:
        self._patiently(lambda: db.execute("BEGIN IMMEDIATE"))
        try:
            yield
            self._patiently(lambda: db.execute("COMMIT"))
        finally:
            if db.in_transaction:
                db.execute("ROLLBACK")

    def _open(self, *, to_write: bool = False) -> Database:
        kept: Database | None = self.current()
        if kept is not None:
            if not self._terms.rehearse and not _is_still(self._path, self._file):
                raise IoFailure(str(self._path), "it was removed or replaced while it was open")
            return kept
        if to_write:
            _make(self._path)
        elif not os.path.lexists(self._path):
            return self._copy(None)
        _must_be_safe(self._path)
        db = self._patiently(self._connect)
        try:
            is_behind = self._patiently(lambda: self._version(db)) < len(self._steps)
            if to_write:
                self._patiently(lambda: db.execute("PRAGMA journal_mode = WAL"))
            if to_write and is_behind:
                self._migrate(db)
            elif is_behind or self._terms.rehearse:
                return self._copy(db)
            self._connection, self._file = db, os.stat(self._path)
            return db
        finally:
            if self._connection is not db:
                db.close()

    def _copy(self, source: Database | None) -> Database:
        """The store as it is now, in memory: to forecast in, or to read where there is none yet, or an older one."""
        copy = in_memory()
        if source is not None:
            self._patiently(lambda: source.backup(copy))
        if self._version(copy) < len(self._steps):
            self._migrate(copy)
        if self._terms.rehearse:
            self._connection = copy
        return copy

    def _connect(self) -> Database:
        """Where a log cannot be, a rollback journal whose end is flushed too: a power cut must not bring one back."""
        uri = f"{self._path.absolute().as_uri()}?mode=rw"
        db = sqlite3.connect(uri, timeout=_BUSY_SECONDS, uri=True, isolation_level=None, factory=Database)
        try:
            for setting in (f"wal_autocheckpoint = {_LOG_PAGES}", "synchronous = FULL", "fullfsync = ON"):
                db.execute(f"PRAGMA {setting}")
            if db.execute("PRAGMA journal_mode").fetchone() != ("wal",):
                db.execute("PRAGMA journal_mode = TRUNCATE")
        except BaseException:
            db.close()
            raise
        return db

    def _version(self, db: Database) -> int:
        found, owner = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id"))
        if owner != _OURS and (owner or db.execute("SELECT 1 FROM sqlite_master").fetchone()):
            raise UnsafePath(str(self._path), "it is a database of something else")
        if found > len(self._steps):
            raise StateTooNew(store=str(self._path), found=found, known=len(self._steps))
        return int(found)

    def _migrate(self, db: Database) -> None:
        """All the steps that are missing, or none. Under the lock: the second process finds them done."""
        with self._transaction(db):
            for step in self._steps[self._version(db) :]:
                for statement in filter(str.strip, step.split(";")):
                    db.execute(statement)
            db.execute(f"PRAGMA user_version = {len(self._steps)}")
            db.execute(f"PRAGMA application_id = {_OURS}")

    def _patiently(self, attempt: Callable[[], T]) -> T:
        """Readers meet a commit, a commit meets readers: try again, until the deadline or a signal."""
        deadline = None
        while True:
            try:
                return attempt()
            except sqlite3.OperationalError as error:
                if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_BUSY"):
                    raise
                deadline = deadline or time.monotonic() + self._terms.seconds()
                self._terms.signals.check()
                if time.monotonic() >= deadline:
                    raise self._terms.busy(self._path.name) from None

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # what is damaged may not even be named in UTF-8
            raise _our_error(error, str(self._path)) from error


def _make(path: Path) -> None:
    """An empty file is an empty store.

    A file that is there is not opened: to close it drops all locks that SQLite has on it for another store of this
    process. Then the next one who closes it takes himself for the last, and deletes the log that we go on writing to.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _is_still(path: Path, opened: os.stat_result | None) -> bool:
    """SQLite itself does not notice, and goes on with the file that has lost its name."""
    with suppress(FileNotFoundError):
        return opened is not None and os.path.samestat(os.stat(path), opened)
    return False


def _must_be_safe(path: Path) -> None:
    """Never through a link: the user who planted it would choose what we write to."""
    found = os.lstat(path)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
        raise UnsafePath(str(path), "a store has to be a regular file of your own")
    if found.st_nlink > 1:
        problem = "it has a second name (a hard link), and after a crash SQLite looks for the journal under one only"
        raise UnsafePath(str(path), problem)


def _our_error(error: Exception, path: str) -> ToolError:
    name = getattr(error, "sqlite_errorname", "")
    if name == "SQLITE_FULL":
        return NoSpace(path)
    if name.startswith("SQLITE_READONLY"):
        return ReadOnly(path)
    if name.startswith(_FORBIDDEN):
        return PermissionDenied(path, "it cannot be opened")
    return IoFailure(path, str(error))
