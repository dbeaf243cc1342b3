"""The tracee: stop before every watched event of this process until the tracer replies.

Python's own audit events are most of the events. reported_calls.py adds an event for other calls,
such as os.write(). `watch_every_call` makes an event of every call that uses files.

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

import fcntl
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .effects import effects_of
from .open_files import is_lock_free, path_of
from .protocol import BLOCKED, Command
from .reported_calls import Facts, ReportedCalls


@dataclass(frozen=True)
class _AuditEvent:
    """An audit event that is reported, and the meaning of its arguments."""

    path_arguments: int = 1
    """The number of its first arguments that are paths or descriptors."""
    fact_positions: tuple[tuple[str, int], ...] = ()
    """The other reported arguments: for each, a name and its position."""


_AUDIT_EVENTS = {
    "open": _AuditEvent(fact_positions=(("flags", 2),)),
    "os.chmod": _AuditEvent(),
    "os.link": _AuditEvent(path_arguments=2),
    "os.listdir": _AuditEvent(),
    "os.mkdir": _AuditEvent(),
    "os.remove": _AuditEvent(),
    "os.rename": _AuditEvent(path_arguments=2),
    "os.rmdir": _AuditEvent(),
    "os.symlink": _AuditEvent(path_arguments=2),
    "os.truncate": _AuditEvent(),
    "fcntl.flock": _AuditEvent(fact_positions=(("descriptor", 0), ("operation", 1))),
    "sqlite3.connect": _AuditEvent(),
    "stepping.verb": _AuditEvent(path_arguments=0, fact_positions=(("statement", 0),)),
}
"""The audit events that are always reported."""

_MORE_AUDIT_EVENTS = {
    "os.chown": _AuditEvent(),
    "os.getxattr": _AuditEvent(),
    "os.listxattr": _AuditEvent(),
    "os.removexattr": _AuditEvent(),
    "os.scandir": _AuditEvent(),
    "os.setxattr": _AuditEvent(),
    "os.utime": _AuditEvent(),
}
"""The audit events that are reported only if every call is watched."""

describe: Callable[[], Facts] = dict
"""A function that returns more facts for each event. The program that runs may replace it."""

_tracee: "Tracee | None" = None
"""The tracee of this process, or None if the process is not stepped."""


class Tracee:
    """The stepping of this process: it reports events, and follows the commands of the tracer."""

    def __init__(self, socket_descriptor: int, watched_directory: str) -> None:
        self._socket = socket.socket(fileno=socket_descriptor)
        self._lines = self._socket.makefile("rb")
        self._watched_directory: str | None = watched_directory
        """Only events in this directory are reported. None if no event is reported any more."""
        self._pid = os.getpid()
        # While an event is reported, calls of the tracee itself must not be reported.
        self._is_reporting = False
        self._reports_effects = False
        self._audit_events = _AUDIT_EVENTS
        self._reported_calls = ReportedCalls(self.report_event)

    def start(self) -> None:
        """Begin to report events."""
        self._reported_calls.replace_writes()
        sys.addaudithook(self._handle_audit_event)

    def watch_every_call(self) -> None:
        """Report every call that uses files, and the effects of each event."""
        self._reports_effects = True
        self._audit_events = {**_AUDIT_EVENTS, **_MORE_AUDIT_EVENTS}
        self._reported_calls.replace_every_call()

    def _handle_audit_event(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Report an audit event if it is watched. Python calls this for every audit event."""
        audit_event = self._audit_events.get(event)
        if audit_event is None:
            return
        paths = [path_of(argument) for argument in arguments[: audit_event.path_arguments]]
        if paths == [""]:
            # os.listdir() and os.scandir() without an argument.
            paths = [os.getcwd()]
        facts = {name: arguments[position] for name, position in audit_event.fact_positions}
        self.report_event(event, paths, facts)

    def report_event(self, event: str, paths: Sequence[str], facts: Facts) -> None:
        """Report an event, and wait until the tracer lets the program continue.

        Do nothing in a child process, which is not stepped, and for calls of the tracee itself.
        """
        is_child_process = os.getpid() != self._pid
        if self._is_reporting or is_child_process:
            return
        self._is_reporting = True
        try:
            tracer_decided = self._stop_before(event, paths, facts)
            if tracer_decided and event == "fcntl.flock":
                # The program's own call follows, and must not have to wait.
                self._take_lock_without_waiting(paths, facts["descriptor"], facts["operation"])
        finally:
            self._is_reporting = False

    def _take_lock_without_waiting(
        self, paths: Sequence[str], descriptor: int, operation: int
    ) -> None:
        """Take the lock that the program is about to ask for with flock(), when it is free.

        As long as it is not free, stop with the event `blocked`. The tracer decides when to try
        again. Do nothing for calls that do not wait for a lock.
        """
        if operation & fcntl.LOCK_UN:
            return
        self._reported_calls.remember_lock(descriptor)
        if operation & fcntl.LOCK_NB:
            return
        facts = {"operation": operation, "descriptor": descriptor}
        while not _try_lock(descriptor, operation):
            tracer_decided = self._stop_before(BLOCKED, paths, facts)
            if not tracer_decided:
                # The program's own call follows, and waits for the lock.
                return

    def _stop_before(self, event: str, paths: Sequence[str], facts: Facts) -> bool:
        """Stop before an event, and follow the tracer's commands until the process continues.

        Return whether the tracer decided that it continues. That is not so in two cases: the event
        is not watched, or this thread has sent a signal to the main thread. Raise OSError if the
        event should fail.
        """
        if not self._is_watched(paths):
            return False
        while True:
            self._send({"event": event, "paths": paths, **describe(), **facts})
            command, argument = self._receive_command(facts)
            if command == Command.GO:
                self._report_effects(event, paths, facts)
                return True
            if command == Command.FREE:
                # From now on, no event is watched.
                self._watched_directory = None
                return True
            if command == Command.RAISE:
                error_number = argument
                raise OSError(error_number, os.strerror(error_number), paths[0])
            assert command == Command.SIGNAL
            signal_number = argument
            # In the main thread, the signal handler runs before the next line.
            os.kill(self._pid, signal_number)
            is_main_thread = threading.current_thread() is threading.main_thread()
            if not is_main_thread:
                # The handler runs in the main thread, and the tracer waits for an event of that
                # thread. So this thread, which waits for a lock, must not stop here again.
                return False

    def _is_watched(self, paths: Sequence[str]) -> bool:
        """Return whether an event with these paths is reported. Events without paths always are."""
        directory = self._watched_directory
        if directory is None:
            return False
        return not paths or any(path.startswith(directory) for path in paths)

    def _receive_command(self, facts: Facts) -> tuple[Command, int]:
        """Return the next command except PROBE, to which this replies itself.

        Also return its argument: the number of an error or of a signal. It is 0 for the others.
        """
        while True:
            line = self._lines.readline().decode().strip()
            if not line:
                # The tracer is dead. Exit without any cleanup, which could change files when
                # nobody controls this process any more.
                os._exit(1)
            word, _, argument = line.partition(" ")
            command = Command(word)
            if command in (Command.RAISE, Command.SIGNAL):
                return command, int(argument)
            if command != Command.PROBE:
                return command, 0
            operation = facts["operation"] & ~fcntl.LOCK_NB
            self._send({"is_free": is_lock_free(facts["descriptor"], operation)})

    def _report_effects(self, event: str, paths: Sequence[str], facts: Facts) -> None:
        """Report the effects of the event, if every call is watched.

        The report of the stop cannot contain the effects. While this process waited, other
        processes may have changed the files.
        """
        if self._reports_effects and self._watched_directory is not None:
            effects = effects_of(event, paths, facts, self._watched_directory, is_lock_free)
            self._send({"effects": effects})

    def _send(self, message: object) -> None:
        """Send a message to the tracer."""
        self._socket.sendall(json.dumps(message).encode() + b"\n")


def _try_lock(descriptor: int, operation: int) -> bool:
    """Try to take a lock without waiting for it. Return whether this succeeded."""
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def start(socket_descriptor: int, watched_directory: str) -> None:
    """Begin to report the events of this process in the watched directory to the tracer."""
    global _tracee
    _tracee = Tracee(socket_descriptor, watched_directory)
    _tracee.start()


def watch_every_call() -> None:
    """Report every call of this process that uses files. Do nothing if it is not stepped."""
    if _tracee is not None:
        _tracee.watch_every_call()
