"""The tracee: run a program, and stop before every watched event until the tracer replies.

Python's own audit events are most of the events. Other calls, such as os.write(), are replaced by a
function that reports the event first. `watch_every_call` replaces all functions of `os` that use
files.

A stop is one line of JSON to the tracer. The tracer replies with one of these lines:

* `go`: continue to the next event.
* `raise 28`: raise the OSError with this number instead of the event.
* `signal 15`: send this signal to this process. After the handler, stop here again.
* `probe`: reply whether the lock that this event asks for is free, and stop here again.
* `free`: continue to the end without reporting any more events.

If the tracer dies, the tracee reads the end of its socket, and exits.

The program must not wait for a lock in the kernel, because the tracer could not notice that. So the
tracee tries to take the lock without waiting. If the lock is not free, the tracee stops with the
event `blocked`, and the tracer decides when it tries again.
"""

import base64
import fcntl
import json
import os
import runpy
import socket
import sqlite3
import sys
import threading
import types
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .effects import effects_of

Facts = dict[str, Any]
"""The details of an event that are reported to the tracer, besides its name and its paths."""


@dataclass(frozen=True)
class _Watched:
    """An audit event that is reported."""

    paths: int = 1
    """The number of paths. They are the first arguments of the event."""
    facts: tuple[tuple[str, int], ...] = ()
    """The other reported arguments: for each, a name and its position."""


_AUDIT_EVENTS = {
    "open": _Watched(facts=(("flags", 2),)),
    "os.chmod": _Watched(),
    "os.link": _Watched(paths=2),
    "os.listdir": _Watched(),
    "os.mkdir": _Watched(),
    "os.remove": _Watched(),
    "os.rename": _Watched(paths=2),
    "os.rmdir": _Watched(),
    "os.symlink": _Watched(paths=2),
    "os.truncate": _Watched(),
    "fcntl.flock": _Watched(facts=(("descriptor", 0), ("operation", 1))),
    "sqlite3.connect": _Watched(),
    "stepping.verb": _Watched(paths=0, facts=(("statement", 0),)),
}

_MORE_AUDIT_EVENTS = {
    "os.chown": _Watched(),
    "os.getxattr": _Watched(),
    "os.listxattr": _Watched(),
    "os.removexattr": _Watched(),
    "os.scandir": _Watched(),
    "os.setxattr": _Watched(),
    "os.utime": _Watched(),
}
"""The audit events that are reported only if every call is watched."""

_MORE_CALLS = {
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
"""The functions of `os` without an audit event that are replaced if every call is watched.

For each, the number of its first arguments that are paths or descriptors.
"""

# The original functions. The tracee calls them to describe an event, which must not be an event.
_UNWATCHED_READLINK = os.readlink
_UNWATCHED_SEEK = os.lseek
_UNWATCHED_FSTAT = os.fstat

_DELETED_SUFFIX = " (deleted)"
"""The text that Linux appends to the path of an open file whose name was deleted."""

describe: Callable[[], Facts] = dict
"""A function that returns more facts for each event. The program that runs may replace it."""

_tracee: "Tracee | None" = None
"""The tracee of this process, if it is stepped."""


class Tracee:
    """The stepping of this process: it reports events, and follows the commands of the tracer."""

    def __init__(self, socket_descriptor: int, watch: str) -> None:
        self._socket = socket.socket(fileno=socket_descriptor)
        self._lines = self._socket.makefile("rb")
        self._watch: str | None = watch
        self._pid = os.getpid()
        # While an event is reported, calls of the tracee itself must not be reported.
        self._is_reporting = False
        self._reports_effects = False
        self._audit_events = _AUDIT_EVENTS
        self._locked_descriptors: set[int] = set()

    def handle_audit_event(self, event: str, args: tuple[Any, ...]) -> None:
        """Report an audit event if it is watched. Python calls this for every audit event."""
        watched = self._audit_events.get(event)
        if watched is None:
            return
        paths = [_path_of(argument) for argument in args[: watched.paths]]
        if paths == [""]:
            # os.listdir() and os.scandir() without an argument.
            paths = [os.getcwd()]
        facts = {name: args[position] for name, position in watched.facts}
        self.report_event(event, paths, facts)

    def report_event(self, event: str, paths: Sequence[str], facts: Facts) -> None:
        """Report an event, and wait until the tracer lets the program continue.

        Do nothing in a child process, which is not stepped, and for calls of the tracee itself.
        """
        if self._is_reporting or os.getpid() != self._pid:
            return
        self._is_reporting = True
        try:
            was_reported = self._stop(event, paths, facts)
            if was_reported and event == "fcntl.flock":
                self._lock_without_blocking(paths, facts["descriptor"], facts["operation"])
        finally:
            self._is_reporting = False

    def wrap(
        self,
        name: str,
        get_facts: Callable[..., Facts] = lambda *_args: {},
        *,
        paths: int = 1,
    ) -> None:
        """Replace a function of `os` with one that reports the event `os.NAME` first."""
        original = getattr(os, name)

        def reporting(*args: Any, **named: Any) -> Any:
            event_paths = [_path_of(argument) for argument in args[:paths]]
            if not event_paths:
                # The call has only keyword arguments, for example os.stat(path=...).
                event_paths = [_path_of(named.get("path", named.get("fd")))]
            self.report_event(f"os.{name}", event_paths, get_facts(*args))
            return original(*args, **named)

        setattr(os, name, reporting)

    def report_statements(self) -> None:
        """Report each SQL statement on every SQLite connection that is opened from now on."""
        original = sqlite3.connect

        def connect(database: Any, *args: Any, **named: Any) -> Any:
            connection = original(database, *args, **named)
            path = _path_of(str(database).removeprefix("file://").partition("?")[0])
            # SQLite calls this before each statement.
            connection.set_trace_callback(
                lambda statement: self.report_event("sql", [path], {"statement": statement})
            )
            return connection

        sqlite3.connect = connect

    def watch_every_call(self) -> None:
        """Report every call that uses files, and the effects of each event."""
        self._reports_effects = True
        self._audit_events = {**_AUDIT_EVENTS, **_MORE_AUDIT_EVENTS}
        for name, paths in _MORE_CALLS.items():
            if hasattr(os, name):
                self.wrap(name, paths=paths)
        self.wrap("read", _end_of_read)
        self._wrap_seeks()
        self._wrap_close()
        self._wrap_kill()

    def _wrap_seeks(self) -> None:
        """Report a seek to the end of a file, which reads the size. Other seeks read nothing."""
        original = os.lseek

        def seek(descriptor: int, offset: int, whence: int) -> int:
            if whence == os.SEEK_END:
                self.report_event("os.lseek", [_path_of(descriptor)], {})
            return original(descriptor, offset, whence)

        os.lseek = seek

    def _wrap_close(self) -> None:
        """Report the closing of a locked file, because this releases the lock."""
        original = os.close

        def close(fd: int) -> None:
            if fd in self._locked_descriptors:
                self._locked_descriptors.discard(fd)
                if not _has_duplicate(fd):
                    self.report_event("os.close", [_path_of(fd)], {})
            original(fd)

        os.close = close

    def _wrap_kill(self) -> None:
        """Report signal 0, which tests whether a process is alive. No other signal is an event."""
        original = os.kill

        def kill(pid: int, signal: int) -> None:
            if signal == 0:
                self.report_event("os.kill", [], {})
            original(pid, signal)

        os.kill = kill

    def _lock_without_blocking(self, paths: Sequence[str], descriptor: int, operation: int) -> None:
        """Take the lock of a flock() call without waiting in the kernel. Stop until it is free.

        Then the call itself succeeds at once. Do nothing for other operations than waiting.
        """
        if operation & fcntl.LOCK_UN:
            return
        self._locked_descriptors.add(descriptor)
        if operation & fcntl.LOCK_NB:
            return
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
                return
            facts = {"operation": operation, "descriptor": descriptor}
            was_reported = self._stop("blocked", paths, facts)
            if not was_reported:
                # The tracer does not decide about this call any more, so let the call wait.
                return

    def _stop(self, event: str, paths: Sequence[str], facts: Facts) -> bool:
        """Report the event, and follow the tracer's command. Return whether it was reported."""
        if not self._is_watched(paths):
            return False
        while True:
            self._send({"event": event, "paths": paths, **describe(), **facts})
            command, _, number = self._receive_command(facts)
            if command == "go":
                self._report_effects(event, paths, facts)
                return True
            if command == "raise":
                raise OSError(int(number), os.strerror(int(number)), paths[0])
            if command == "signal":
                os.kill(self._pid, int(number))
                if threading.current_thread() is not threading.main_thread():
                    # This thread waits for a lock. The effect of the signal is in the main thread.
                    return False
            elif command == "free":
                self._watch = None
                return True
            else:
                # The command is empty, because the tracer is dead. Exit without any cleanup, which
                # could change files when nobody controls this process any more.
                os._exit(1)

    def _is_watched(self, paths: Sequence[str]) -> bool:
        """Return whether an event with these paths is reported. Events without paths always are."""
        watch = self._watch
        if watch is None:
            return False
        return not paths or any(path.startswith(watch) for path in paths)

    def _receive_command(self, facts: Facts) -> tuple[str, str, str]:
        """Return the three parts of the next command. Reply to each `probe` that comes before."""
        while True:
            command = self._lines.readline().decode().strip()
            if command != "probe":
                return command.partition(" ")
            operation = facts["operation"] | fcntl.LOCK_NB
            self._send({"is_free": _is_lock_free(facts["descriptor"], operation)})

    def _report_effects(self, event: str, paths: Sequence[str], facts: Facts) -> None:
        """Report the effects of the event, if every call is watched.

        The report of the stop cannot contain the effects. While this process waited, other
        processes may have changed the files.
        """
        if self._reports_effects and self._watch is not None:
            effects = effects_of(event, paths, facts, self._watch, _is_lock_free)
            self._send({"effects": effects})

    def _send(self, message: object) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")


def _path_of(argument: Any) -> str:
    """Return the absolute path for an argument of a call, which is a path or a descriptor."""
    if argument is None:
        return ""
    if isinstance(argument, int):
        try:
            path = _UNWATCHED_READLINK(f"/proc/self/fd/{argument}")
            # Without this, a worker that closes a deleted file would never seem to release the lock
            # that it took when the file had its name.
            return path.removesuffix(_DELETED_SUFFIX)
        except OSError:
            return f"descriptor {argument}"
    if hasattr(argument, "fileno"):
        return _path_of(argument.fileno())
    return os.path.abspath(os.fsdecode(argument))


def _is_lock_free(descriptor: int, operation: int = fcntl.LOCK_EX | fcntl.LOCK_NB) -> bool:
    """Return whether flock() would get the lock of this open file at once. Do not take it."""
    if _has_lock(descriptor):
        return True
    # Open the file again: a lock on the new descriptor does not change the lock of the first one.
    other = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.flock(other, operation)
    except BlockingIOError:
        return False
    finally:
        os.close(other)
    return True


def _has_duplicate(descriptor: int) -> bool:
    """Return whether another descriptor of this process keeps the lock of this open file.

    The kernel releases a lock only when all duplicates of the descriptor are closed.
    """
    path = _path_of(descriptor)
    # Linux lists the descriptors of this process in this directory.
    for name in os.listdir("/proc/self/fd"):
        other = int(name)
        if other == descriptor:
            continue
        if _path_of(other) == path and _has_lock(other):
            return True
    return False


def _has_lock(descriptor: int) -> bool:
    """Return whether flock() has locked this open file. Return False if it is closed."""
    with suppress(FileNotFoundError), open(f"/proc/self/fdinfo/{descriptor}") as status:
        return "FLOCK" in status.read()
    return False


def watch_every_call() -> None:
    """Report every call of this process that uses files. Do nothing if it is not stepped."""
    if _tracee is not None:
        _tracee.watch_every_call()


def run(tracing: dict[str, Any] | None) -> None:
    """Run the program that `sys.argv` names, in this process.

    `tracing` has the socket to the tracer, and the directory to watch. Without it, the program is
    not stepped.
    """
    global _tracee
    if tracing is not None:
        _tracee = Tracee(tracing["socket"], tracing["watch"])
        _tracee.wrap("fsync")
        _tracee.wrap("fdatasync")
        _tracee.wrap("write", _data_of_write)
        _tracee.wrap("pwrite", _data_of_pwrite)
        _tracee.report_statements()
        sys.addaudithook(_tracee.handle_audit_event)
    # In a stepped process, the first import would list this directory, which would be an event.
    if tracing is None and not sys.flags.safe_path:
        sys.path[0] = _script_directory()
    run_program()


def _data_of_write(_descriptor: int, data: Any) -> Facts:
    """Return the facts about a call of os.write()."""
    return {"data": base64.b64encode(bytes(data)).decode()}


def _data_of_pwrite(_descriptor: int, data: Any, offset: int) -> Facts:
    """Return the facts about a call of os.pwrite()."""
    return {"data": base64.b64encode(bytes(data)).decode(), "offset": offset}


def _end_of_read(descriptor: int, _length: int) -> Facts:
    """Return the facts about a call of os.read(): whether the end of the file is reached."""
    try:
        position = _UNWATCHED_SEEK(descriptor, 0, os.SEEK_CUR)
    except OSError:
        # The descriptor is a pipe or a terminal, which has no position.
        return {"is_at_end": False}
    return {"is_at_end": position >= _UNWATCHED_FSTAT(descriptor).st_size}


def _script_directory() -> str:
    """Return the first entry of `sys.path` that `python` would have with these arguments.

    A forked process inherits the entry of the server.
    """
    if sys.argv[0] == "-m":
        return os.getcwd()
    if sys.argv[0] == "-c":
        return ""
    return os.path.dirname(os.path.realpath(sys.argv[0]))


def run_program() -> None:
    """Run the program that `sys.argv` names, as `python` would with these arguments."""
    if sys.argv[0] == "-m":
        sys.argv.pop(0)
        # The server may have imported the module already. Then runpy would print a warning.
        sys.modules.pop(sys.argv[0], None)
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    elif sys.argv[0] == "-c":
        source = sys.argv.pop(1)
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        code = compile(source, "<string>", "exec")
        exec(code, module.__dict__)  # noqa: S102 - what `python -c` does
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")
