"""Functions that take the place of functions of `os`: they report a call before they make it.

Python has audit events for many calls, such as os.rename(). It has none for others, such as
os.write(). So the tracee replaces those with functions that report an event of the same form.
"""

import base64
import fcntl
import os
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .open_files import has_locked_duplicate, is_at_end, path_of

Facts = dict[str, Any]
"""The details of an event that are reported to the tracer, besides its name and its paths."""

Report = Callable[[str, Sequence[str], Facts], None]
"""A function that reports an event: its name, its paths and its facts."""

_PATH_ARGUMENTS = {
    "access": 1,
    "copy_file_range": 2,
    "fstat": 1,
    "lstat": 1,
    "posix_fallocate": 1,
    "pread": 1,
    "preadv": 1,
    "pwritev": 1,
    "readlink": 1,
    "readv": 1,
    "sendfile": 2,
    "splice": 2,
    "stat": 1,
    "writev": 1,
}
"""The functions of `os` without an audit event, besides those that change or flush files.

For each, the number of its first arguments that are paths or descriptors.
"""


class ReportedCalls:
    """The functions that take the place of functions of `os` and of sqlite3.connect()."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._locked_descriptors: set[int] = set()
        """The descriptors with which this process has asked for a lock."""
        self._original_close = os.close
        self._original_connect = sqlite3.connect
        self._original_kill = os.kill
        self._original_lseek = os.lseek

    def replace_writes(self) -> None:
        """Replace the functions that write and flush files, and those that connect to SQLite."""
        self._replace("fsync")
        self._replace("fdatasync")
        self._replace("sync", path_arguments=0)
        self._replace("write", get_facts=_facts_of_write)
        self._replace("pwrite", get_facts=_facts_of_pwrite)
        sqlite3.connect = self._report_statements_of

    def replace_every_call(self) -> None:
        """Replace also the functions that read files, release locks or look for a process."""
        for name, path_arguments in _PATH_ARGUMENTS.items():
            # Some systems do not have all of these functions.
            if hasattr(os, name):
                self._replace(name, path_arguments)
        self._replace("read", get_facts=_facts_of_read)
        os.lseek = self._lseek
        os.close = self._close
        os.kill = self._kill

    def remember_lock(self, descriptor: int) -> None:
        """Remember that the process locks this file, so that its closing is reported."""
        self._locked_descriptors.add(descriptor)

    def _replace(
        self,
        name: str,
        path_arguments: int = 1,
        get_facts: Callable[..., Facts] = lambda *_arguments: {},
    ) -> None:
        """Replace a function of `os` with one that reports the event `os.NAME` first.

        The first `path_arguments` arguments of the function are paths or descriptors. `get_facts`
        returns the facts to report about a call with these arguments.
        """
        original = getattr(os, name)

        def report_and_call(*arguments: Any, **keywords: Any) -> Any:
            """Report the event, then make the call."""
            paths = [path_of(argument) for argument in arguments[:path_arguments]]
            if path_arguments > 0 and not paths:
                # The call has only keyword arguments, for example os.stat(path=...).
                paths = [path_of(keywords.get("path", keywords.get("fd")))]
            self._report(f"os.{name}", paths, get_facts(*arguments))
            return original(*arguments, **keywords)

        setattr(os, name, report_and_call)

    def _close(self, fd: int) -> None:
        """Close a descriptor, like os.close(). Report it if this releases the lock of the file.

        Like every event, it is reported before it happens, while the descriptor is still open.
        """
        if fd in self._locked_descriptors:
            # The number of a closed descriptor is used again for the next file.
            self._locked_descriptors.discard(fd)
            # The kernel releases the lock with the last duplicate of the descriptor.
            releases_lock = not has_locked_duplicate(fd)
            if releases_lock:
                self._report("os.close", [path_of(fd)], {})
        self._original_close(fd)

    def _lseek(self, descriptor: int, offset: int, whence: int) -> int:
        """Change the position in a file, like os.lseek().

        Report a seek to the end of the file, because it reads the size. Other seeks read nothing.
        """
        reads_size = whence == os.SEEK_END
        if reads_size:
            self._report("os.lseek", [path_of(descriptor)], {})
        return self._original_lseek(descriptor, offset, whence)

    def _kill(self, pid: int, number: int) -> None:
        """Send a signal, like os.kill(). Report signal 0, which tests whether a process is alive.

        No other signal is an event.
        """
        is_test = number == 0
        if is_test:
            self._report("os.kill", [], {})
        self._original_kill(pid, number)

    def _report_statements_of(self, database: Any, *arguments: Any, **keywords: Any) -> Any:
        """Connect to a database, like sqlite3.connect(). Report each statement before it runs."""
        connection = self._original_connect(database, *arguments, **keywords)
        path = path_of(_file_of_database(str(database)))
        # SQLite calls this function before each statement.
        connection.set_trace_callback(partial(self._report_statement, path))
        return connection

    def _report_statement(self, path: str, statement: str) -> None:
        """Report an SQL statement on the database with this path."""
        self._report("sql", [path], {"statement": statement})


def _file_of_database(database: str) -> str:
    """Return the path of a database, which may be a URI such as `file:///app.db?mode=ro`."""
    path, _, _options = database.removeprefix("file://").partition("?")
    return path


def _facts_of_write(descriptor: int, data: Any) -> Facts:
    """Return the facts about a call of os.write().

    `is_flushed` is whether the call returns only when the data is on the disk.
    """
    flags = fcntl.fcntl(descriptor, fcntl.F_GETFL)
    is_flushed = bool(flags & (os.O_SYNC | os.O_DSYNC))
    return {"data": base64.b64encode(bytes(data)).decode(), "is_flushed": is_flushed}


def _facts_of_pwrite(_descriptor: int, data: Any, offset: int) -> Facts:
    """Return the facts about a call of os.pwrite()."""
    return {"data": base64.b64encode(bytes(data)).decode(), "offset": offset}


def _facts_of_read(descriptor: int, _length: int) -> Facts:
    """Return the facts about a call of os.read()."""
    return {"is_at_end": is_at_end(descriptor)}
