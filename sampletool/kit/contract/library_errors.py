"""The table that says how the tool reports each exception of the library `kit/safety`.

The library does not know the exit codes and the options of this program, so other programs can use
it too. This module knows both sides. To report a new exception of the library, add a row to TABLE.

TABLE is at the end, because a text that depends on the failure is built by a function above it.
"""

import os
import signal
from collections.abc import Callable
from typing import Any, NamedTuple

from ..program import PROGRAM
from ..safety import errors as library
from .duration import say_duration
from .errors import SIGNAL_BASE, ErrorKind, ExitStatus, ToolError
from .text import redact

_HINT_IF_UNCERTAIN = "Check whether the change was made before you run the command again."

Facts = dict[str, Any]
"""The facts of an error by their names. They are the `context` in the response."""

Text = str | Callable[[Any], str]
"""A template with attributes of the exception in braces, or a function that returns a text."""


class Row(NamedTuple):
    """How the tool reports one class of exceptions. Each function is called with the exception."""

    code: str
    exit_status: int
    meaning: str
    """What the documentation says about the code."""
    message: Text
    hint: Text
    context: Callable[[Any], Facts]
    retry_after_ms: Callable[[Any], int] | None = None
    """How long to wait before a retry. It is None if a retry would fail again."""


class LibraryFailure(ToolError):
    """An exception of the library, as the tool reports it."""

    def __init__(self, error: library.SafetyError, row: Row) -> None:
        """Build the error from the exception and the row of its class."""
        message = _fill_in(row.message, error)
        hint = _fill_in(row.hint, error)
        super().__init__(message, hint, **row.context(error))
        self.code = row.code
        self.exit_status = row.exit_status
        if isinstance(error, library.Interrupted):
            # The exit code depends on the signal: it is 130 after Ctrl-C, as in a shell.
            self.exit_status = SIGNAL_BASE + error.signal_number
        if row.retry_after_ms is not None:
            self.retry_after_ms = row.retry_after_ms(error)


def from_library_error(error: library.SafetyError) -> ToolError:
    """Return the error that the tool reports for an exception of the library."""
    return LibraryFailure(error, _row_of(type(error)))


def _row_of(error_class: type[Exception]) -> Row:
    """Return the row of TABLE for this class, or for the nearest base class that has one."""
    for candidate in error_class.__mro__:
        if candidate in TABLE:
            return TABLE[candidate]
    raise KeyError(f"{error_class.__name__} has no row in TABLE")


def interrupted_when_done(signal_number: int) -> ToolError:
    """Return the error of a command that had done its work when the signal arrived.

    Running it again could make the same change twice, for example add a task twice. So the hint is
    to check the result.
    """
    interrupted = library.Interrupted(signal_number)
    usual_message = _interrupted_message(interrupted)
    row = TABLE[library.Interrupted]._replace(
        message=f"{usual_message} The command had already finished its work.",
        hint="Check the result before you run the command again.",
    )
    return LibraryFailure(interrupted, row)


def kind_of(error_class: type[Exception]) -> ErrorKind:
    """Return the code, exit code and meaning of a class of expected exceptions.

    The class is a subclass of ToolError, or of an exception in TABLE.
    """
    if issubclass(error_class, ToolError):
        return error_class.kind()
    row = _row_of(error_class)
    return ErrorKind(
        code=row.code,
        exit_status=row.exit_status,
        meaning=row.meaning,
        retryable=row.retry_after_ms is not None,
    )


def usual_hint(error_class: type[Exception]) -> str:
    """Return the template of the hint for a class of expected exceptions.

    It is empty if the hint depends on the failure.
    """
    if issubclass(error_class, ToolError):
        return error_class.advice
    hint = _row_of(error_class).hint
    if callable(hint):
        return ""
    return hint


def _fill_in(text: Text, error: library.SafetyError) -> str:
    """Return the message or the hint of a row for one exception.

    `text` is a function, or a template such as "{path} cannot be used". A name in braces is an
    attribute of the exception.
    """
    if callable(text):
        return text(error)
    return text.format(**vars(error))


def _lock_held_message(error: library.LockTimeout) -> str:
    # lock_held imports `random`, which takes 4 ms. Few commands need it.
    from .lock_held import message_for

    return message_for(error)


def _lock_held_hint(error: library.LockTimeout) -> str:
    # Imported here for the same reason as in _lock_held_message().
    from .lock_held import hint_for

    return hint_for(error)


_MAX_HOLDERS = 10
"""How many holders of one lock are listed. A shared lock can have hundreds."""


def _lock_held_context(error: library.LockTimeout) -> Facts:
    """Return the lock, the wait and the holders. Callers rely on these names."""
    facts: Facts = {
        "lock": error.name,
        "waited_ms": _milliseconds(error.waited_seconds),
        "timeout_ms": _milliseconds(error.timeout_seconds),
    }
    holders = error.owners.holders
    if holders:
        facts["holder"] = holders[0]
    # `holder` is there in any case: many callers know only that one.
    if len(holders) > 1:
        facts["holders"] = holders[:_MAX_HOLDERS]
        facts["holder_count"] = len(holders)
    return facts


def _lock_held_retry_after_ms(error: library.LockTimeout) -> int:
    """Return after how many milliseconds the lock is likely to be free."""
    # Imported here for the same reason as in _lock_held_message().
    from .lock_held import estimate_retry_ms

    age_ms = None
    if error.owners.holders:
        # If there are several, this is the one that has held the lock for the longest time.
        age_ms = error.owners.holders[0].age_ms
    return estimate_retry_ms(age_ms, error.owners.usual_ms)


_HINT_AFTER_DEADLOCK = (
    "Run this command after the other one has finished, "
    "or have the other one do this work itself."
)  # fmt: skip


def _nested_call_message(error: library.Deadlock) -> str:
    reason = f'the process that started this command already holds the lock "{error.name}"'
    return f"Deadlock avoided: {reason}."


def _nested_call_context(error: library.Deadlock) -> Facts:
    return {"lock": error.name}


def _timeout_message(error: library.DeadlineExceeded) -> str:
    timeout = say_duration(error.seconds)
    message = f"The command did not finish within --timeout {timeout} and was stopped."
    if error.waiting_for is not None:
        message += f" {_lock_held_message(error.waiting_for)}"
    return f"{message}{_uncertainty_sentence(error)}"


def _timeout_hint(error: library.DeadlineExceeded) -> str:
    if error.uncertain_change is not None:
        return _HINT_IF_UNCERTAIN
    return "Pass a longer --timeout. The processes that the command started were terminated."


def _timeout_context(error: library.DeadlineExceeded) -> Facts:
    """Return the --timeout of the command, the lock that it waited for, and an uncertain change."""
    facts: Facts = {}
    if error.waiting_for is not None:
        facts.update(_lock_held_context(error.waiting_for))
    facts["timeout"] = say_duration(error.seconds)
    # The facts about the lock have a `timeout_ms` as well. Replace it: the --timeout of the command
    # ended the wait, and not the --lock-timeout.
    facts["timeout_ms"] = _milliseconds(error.seconds)
    facts.update(_uncertainty_facts(error))
    return facts


def _interrupted_message(error: library.Interrupted) -> str:
    name = signal.Signals(error.signal_number).name
    return f"Stopped by {name}.{_uncertainty_sentence(error)}"


def _interrupted_hint(error: library.Interrupted) -> str:
    if error.uncertain_change is not None:
        return _HINT_IF_UNCERTAIN
    return "All locks were released. Each file was either changed completely or not at all."


def _interrupted_context(error: library.Interrupted) -> Facts:
    facts: Facts = {"signal": signal.Signals(error.signal_number).name}
    facts.update(_uncertainty_facts(error))
    return facts


def _uncertainty_sentence(error: library.Interrupted | library.DeadlineExceeded) -> str:
    """Return a sentence about the change whose outcome is unknown, or "" if there is none.

    The sentence begins with a space, because it follows another one.
    """
    if error.uncertain_change is None:
        return ""
    # The name of the change may contain a URL with a password.
    return f" This change may or may not have been made: {redact(error.uncertain_change)}."


def _uncertainty_facts(error: library.Interrupted | library.DeadlineExceeded) -> Facts:
    """Return the facts about the change whose outcome is unknown, if there is one."""
    if error.uncertain_change is None:
        return {}
    return {"outcome": "unknown", "change": redact(error.uncertain_change)}


def _path_context(error: library.PathFailure) -> Facts:
    # A path that is not absolute is a description, such as "the current directory".
    if os.path.isabs(error.path):
        return {"path": error.path, "reason": error.reason}
    return {"reason": error.reason}


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


TABLE: dict[type[Exception], Row] = {
    library.LockTimeout: Row(
        code="LOCK_HELD",
        exit_status=ExitStatus.LOCK_HELD,
        meaning="Another process kept the lock for longer than the command was willing to wait.",
        message=_lock_held_message,
        hint=_lock_held_hint,
        context=_lock_held_context,
        retry_after_ms=_lock_held_retry_after_ms,
    ),
    library.Deadlock: Row(
        code="NESTED_CALL",
        exit_status=ExitStatus.PRECONDITION,
        meaning="The process that started this command holds the lock that this command needs.",
        message=_nested_call_message,
        hint=_HINT_AFTER_DEADLOCK,
        context=_nested_call_context,
    ),
    library.DeadlineExceeded: Row(
        code="TIMEOUT",
        exit_status=ExitStatus.TIMEOUT,
        meaning="The command did not finish within --timeout, and was stopped.",
        message=_timeout_message,
        hint=_timeout_hint,
        context=_timeout_context,
    ),
    library.Interrupted: Row(
        code="INTERRUPTED",
        exit_status=SIGNAL_BASE + signal.SIGINT,
        meaning="A signal stopped the command. The exit code is 128 plus the signal number.",
        message=_interrupted_message,
        hint=_interrupted_hint,
        context=_interrupted_context,
    ),
    library.UnsafePath: Row(
        code="UNSAFE_PATH",
        exit_status=ExitStatus.USAGE,
        meaning="A path leads to a link, a device, or something else that must not be used.",
        message="Cannot use {path}: {reason}.",
        hint="Use another path, or move what is there out of the way.",
        context=_path_context,
    ),
    library.UnsafeDirectory: Row(
        code="UNSAFE_DIRECTORY",
        exit_status=ExitStatus.PERMISSION,
        meaning="Other users own or can write to a directory that must be private.",
        message="{path} is not safe to use: {reason}.",
        hint="Fix the owner and the permissions of the directory, or use another directory.",
        context=_path_context,
    ),
    library.InvalidToml: Row(
        code="INVALID_TOML",
        exit_status=ExitStatus.USAGE,
        meaning="A file cannot be read as TOML, or cannot be changed safely.",
        message="Cannot use {path} as a TOML file: {reason}.",
        hint="Fix the file in a text editor. It was not changed.",
        context=_path_context,
    ),
    library.NotFlushed: Row(
        code="NOT_FLUSHED",
        exit_status=ExitStatus.INTERNAL,
        meaning="A file was saved, but a power failure could undo the change.",
        message="{path} was saved, but a power failure could undo the change: {reason}.",
        hint="Check the disk for errors. You do not need to run the command again.",
        context=_path_context,
    ),
    library.LocksUnsupported: Row(
        code="LOCKS_UNSUPPORTED",
        exit_status=ExitStatus.PRECONDITION,
        meaning="The file system does not support locks.",
        message="Cannot lock {path}: {reason}.",
        hint=f"Use a local file system. To check this machine, run `{PROGRAM} doctor`.",
        context=_path_context,
    ),
}
"""The row for each exception of the library."""
