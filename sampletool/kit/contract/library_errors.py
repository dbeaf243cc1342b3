"""The table that gives each exception of `kit/safety` a code, an exit code, a message and a hint.

The library knows neither exit codes nor the options of this program, so that other programs can use
it. This module knows both. It is the only place that turns one into the other.
"""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..program import PROGRAM
from ..safety import errors as library
from .duration import say_duration
from .errors import ErrorKind, ExitStatus, ToolError
from .text import redact

_CHECK_BEFORE_REPEATING = "Check whether the change was made before you run the command again."

Facts = dict[str, Any]
"""The facts of an error, by their names: `context` in the response."""


class LibraryFailure(ToolError):
    """An exception of the library, as the tool reports it."""

    def __init__(self, kind: ErrorKind, message: str, hint: str, facts: Facts) -> None:
        super().__init__(message, hint, **facts)
        self.code = kind.code
        self.exit_status = kind.exit_status


@dataclass(frozen=True)
class Row:
    """How the tool reports one exception of the library."""

    kind: ErrorKind
    convert: Callable[[ErrorKind, Any], LibraryFailure]


def kind_of(error_type: type[Exception]) -> ErrorKind:
    """Return the code, the exit code and the meaning of an error that a command can end with."""
    if issubclass(error_type, ToolError):
        return error_type.kind()
    return TABLE[error_type].kind


def to_tool_error(error: library.SafetyError) -> ToolError:
    """Return the error that the tool reports for an exception of the library."""
    row = TABLE[type(error)]
    return row.convert(row.kind, error)


def interrupted_when_done(signal_number: int) -> ToolError:
    """Return the error of a command that had done its work when the signal arrived.

    Its hint must not say "Run the command again": that could repeat a change, such as an order.
    """
    error = to_tool_error(library.Interrupted(signal_number))
    message = f"{error.message} The command had done its work."
    hint = "Check its result before you run the command again."
    failure = LibraryFailure(kind_of(library.Interrupted), message, hint, error.context)
    failure.exit_status = error.exit_status
    return failure


def _path_row(code: str, exit_status: int, meaning: str, message: str, hint: str) -> Row:
    """Return the row of a failure that concerns one path. `{path}` and `{reason}` are replaced."""

    def convert(kind: ErrorKind, error: library.PathFailure) -> LibraryFailure:
        facts: Facts = {"path": error.path, "reason": error.reason}
        # A path that is not absolute is a description, such as "the current directory".
        context = facts if os.path.isabs(error.path) else {"reason": error.reason}
        return LibraryFailure(kind, message.format(**facts), hint.format(**facts), context)

    return Row(ErrorKind(code, exit_status, meaning), convert)


def _convert_lock_timeout(kind: ErrorKind, error: library.LockTimeout) -> LibraryFailure:
    from . import lock_held  # It imports `random`, which takes 4 ms, and few commands need it.

    holders = error.owners.holders
    facts: Facts = {
        "lock": error.name,
        "waited_ms": round(error.waited_seconds * 1000),
        "timeout_ms": round(error.timeout_seconds * 1000),
    }
    if holders:
        facts["holder"] = holders[0]
    if len(holders) > 1:
        facts["holders"] = holders
    failure = LibraryFailure(kind, lock_held.message_for(error), lock_held.hint_for(error), facts)
    age_ms = holders[0].age_ms if holders else None
    failure.retry_after_ms = lock_held.estimate_retry_ms(age_ms, error.owners.usual_ms)
    return failure


def _convert_deadlock(kind: ErrorKind, error: library.Deadlock) -> LibraryFailure:
    reason = f'the process that started this command already holds the lock "{error.name}"'
    return LibraryFailure(
        kind,
        f"Deadlock avoided: {reason}.",
        "Run this command from outside, or let the outer command do its work.",
        {"lock": error.name},
    )


def _convert_deadline(kind: ErrorKind, error: library.DeadlineExceeded) -> LibraryFailure:
    timeout = say_duration(error.seconds)
    message = f"The command did not finish within --timeout {timeout} and was stopped."
    facts: Facts = {}
    if error.waiting_for is not None:
        waited_for = to_tool_error(error.waiting_for)
        message = f"{message} {waited_for.message}"
        facts.update(waited_for.context)
    # The limit of the whole command replaces the limit of the lock.
    facts["timeout"] = timeout
    facts["timeout_ms"] = round(error.seconds * 1000)
    hint = "Pass a longer --timeout. The processes that the command had started have been ended."
    if error.uncertain_change is not None:
        # The name of the change may contain a URL with a password.
        change = redact(error.uncertain_change)
        message = f"{message} {_describe_doubt(change)}"
        hint = _CHECK_BEFORE_REPEATING
        facts.update(outcome="unknown", change=change)
    return LibraryFailure(kind, message, hint, facts)


def _describe_doubt(change: str) -> str:
    return f"It is not known whether this change was made: {change}."


def _convert_interrupted(kind: ErrorKind, error: library.Interrupted) -> LibraryFailure:
    name = signal.Signals(error.signal_number).name
    message = f"Stopped by {name}."
    hint = "Run the command again. Its locks are released and nothing is half done."
    facts: Facts = {"signal": name}
    if error.uncertain_change is not None:
        # The name of the change may contain a URL with a password.
        change = redact(error.uncertain_change)
        message = f"{message} {_describe_doubt(change)}"
        hint = _CHECK_BEFORE_REPEATING
        facts.update(outcome="unknown", change=change)
    failure = LibraryFailure(kind, message, hint, facts)
    failure.exit_status = 128 + error.signal_number
    return failure


TABLE: dict[type[Exception], Row] = {
    library.LockTimeout: Row(
        ErrorKind(
            "LOCK_HELD",
            ExitStatus.LOCK_HELD,
            "Another process kept the lock for longer than the command was willing to wait.",
            retryable=True,
        ),
        _convert_lock_timeout,
    ),
    library.Deadlock: Row(
        ErrorKind(
            "NESTED_CALL",
            ExitStatus.PRECONDITION,
            "The process that started this command holds the lock, and waits for this command.",
        ),
        _convert_deadlock,
    ),
    library.DeadlineExceeded: Row(
        ErrorKind(
            "TIMEOUT",
            ExitStatus.TIMEOUT,
            "The command did not finish within --timeout, and was stopped.",
        ),
        _convert_deadline,
    ),
    library.Interrupted: Row(
        ErrorKind(
            "INTERRUPTED",
            128 + signal.SIGINT,
            "A signal stopped the command. The exit code is 128 plus the number of the signal.",
        ),
        _convert_interrupted,
    ),
    library.UnsafePath: _path_row(
        "UNSAFE_PATH",
        ExitStatus.USAGE,
        "A path leads to a link, a device, or something else that must not be used as a file.",
        "{path} cannot be used: {reason}.",
        "Name another path, or replace what is there.",
    ),
    library.UnsafeDirectory: _path_row(
        "UNSAFE_DIRECTORY",
        ExitStatus.PERMISSION,
        "Other users own or can write to a directory that must be private.",
        "{path} is not safe to use: {reason}.",
        "Correct its owner and mode, or choose another directory.",
    ),
    library.InvalidToml: _path_row(
        "INVALID_TOML",
        ExitStatus.USAGE,
        "A file that must be TOML is not, or cannot be changed safely.",
        "{path} cannot be used as TOML: {reason}.",
        "Correct the file by hand. It was not changed.",
    ),
    library.NotFlushed: _path_row(
        "NOT_FLUSHED",
        ExitStatus.INTERNAL,
        "A file was saved, but a power failure could undo the change.",
        "{path} was saved, but a power failure could undo the change: {reason}.",
        "Check the disk for errors. You do not need to run the command again.",
    ),
    library.LocksUnsupported: _path_row(
        "LOCKS_UNSUPPORTED",
        ExitStatus.PRECONDITION,
        "The file system does not support locks.",
        "{path} cannot be locked: {reason}.",
        f"Use a local file system. `{PROGRAM} doctor` shows what this machine supports.",
    ),
}
