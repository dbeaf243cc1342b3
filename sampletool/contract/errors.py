"""Every expected failure: a type that holds the facts and makes its own sentence from them, once.

A code is a promise to callers; renaming one is a breaking change. What is not listed here is a surprise: it
travels to the door and becomes INTERNAL_ERROR with a crash report.
"""

import errno
import os
import signal
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

from sampletool.contract.duration import say_duration
from sampletool.contract.exit_status import ExitStatus


class ToolError(Exception):
    """An expected failure. `data` carries what was done before it failed."""

    code: ClassVar[str]
    exit_status: ExitStatus
    retry_after_ms: int | None = None
    data: Any = None

    def __init__(self, message: str, suggestion: str, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
        self.context = {name: fact for name, fact in context.items() if fact is not None}

    def describe(self) -> dict[str, Any]:
        described = {
            "code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
            "retryable": self.retry_after_ms is not None,
            "exit_code": int(self.exit_status),
            "context": self.context,
        }
        if self.retry_after_ms is not None:
            described["retry_after_ms"] = self.retry_after_ms
        return described


def did_you_mean(word: str, known: list[str], nearness: float = 0.6) -> str:
    """`Did you mean 'x'?`, or an empty text when nothing is near."""
    close = get_close_matches(word, known, n=3, cutoff=nearness)
    return f"Did you mean {' or '.join(repr(match) for match in close)}?" if close else ""


@dataclass(frozen=True)
class Mistake:
    """One thing wrong with the caller's input."""

    param: str
    code: str
    message: str
    value: str | None = None
    suggestion: str | None = None


class _Mistakes(ToolError):
    exit_status = ExitStatus.USAGE

    def __init__(self, mistakes: list[Mistake], suggestion: str) -> None:
        said = "; ".join(mistake.message.rstrip(".") for mistake in mistakes)
        hints = " ".join(dict.fromkeys(mistake.suggestion for mistake in mistakes if mistake.suggestion))
        super().__init__(f"{said}.", hints or suggestion)
        self.mistakes = mistakes

    def describe(self) -> dict[str, Any]:
        errors = [{k: v for k, v in asdict(mistake).items() if v is not None} for mistake in self.mistakes]
        return {**super().describe(), "errors": errors}


class UsageMistakes(_Mistakes):
    """The command line does not parse."""

    code = "USAGE_ERROR"

    def __init__(self, mistakes: list[Mistake], command_path: str) -> None:
        super().__init__(mistakes, f"See `{command_path} --help`.")


class InvalidValues(_Mistakes):
    """The command line parses, but values in it, or in what it names, are not what they have to be."""

    code = "VALIDATION_ERROR"

    def __init__(self, *mistakes: Mistake, suggestion: str = "Correct the values and run it again.") -> None:
        super().__init__(list(mistakes), suggestion)


class InvalidToml(ToolError):
    code, exit_status = "INVALID_TOML", ExitStatus.USAGE

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} cannot be used as TOML: {reason}.", "Correct the file by hand; it was not changed.", path=path
        )


class UnsafePath(ToolError):
    """A path that leads where we will not go: a link, a device, a directory in a file's place."""

    code, exit_status = "UNSAFE_PATH", ExitStatus.USAGE

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} cannot be used: {reason}.", "Name another path, or put a regular file there.", path=path
        )


class NoWorkspace(ToolError):
    code, exit_status = "NO_WORKSPACE", ExitStatus.PRECONDITION

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"There is no tool.toml in {directory} or above it.",
            "Run it inside a workspace, or name one with --cwd.",
            directory=directory,
        )


class LocksUnsupported(ToolError):
    code, exit_status = "LOCKS_UNSUPPORTED", ExitStatus.PRECONDITION

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} cannot be locked: {reason}.",
            "Put it on a local file system; `tool doctor` tells what this machine supports.",
            path=path,
        )


class NestedCall(ToolError):
    """A child of a call asks for a lock that this very call holds: it would wait for itself."""

    code, exit_status = "NESTED_CALL", ExitStatus.PRECONDITION

    def __init__(self, lock: str) -> None:
        super().__init__(
            f"This call was started by one that holds {lock!r} itself, so waiting for it could never end.",
            "Call it from outside, or let the outer command do this work.",
            lock=lock,
        )


class FileNotFound(ToolError):
    code, exit_status = "FILE_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} does not exist.",
            "Check the path; it is looked up from the current directory, or --cwd.",
            path=path,
        )


class KeyNotFound(ToolError):
    code, exit_status = "KEY_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, key: str, where: str, known: list[str], listing: str = "tool config list") -> None:
        suggestion = did_you_mean(key, known) or f"`{listing}` shows the keys there are."
        super().__init__(f"{key} is not set in {where}.", suggestion, key=key)


class VersionConflict(ToolError):
    code, exit_status = "VERSION_CONFLICT", ExitStatus.CONFLICT

    def __init__(self, what: str, expected: str | int, actual: str | int) -> None:
        super().__init__(
            f"{what} has changed since you read it: expected version {expected}, it is at {actual}.",
            "Read it again, apply your change to what is there now, and retry with its version.",
            expected=expected,
            actual=actual,
        )


class PermissionDenied(ToolError):
    code, exit_status = "PERMISSION_DENIED", ExitStatus.PERMISSION

    def __init__(self, path: str, reason: str = "permission denied") -> None:
        super().__init__(f"{path}: {reason}.", "Check who owns it and its mode.", path=path)


class UnsafeDirectory(ToolError):
    code, exit_status = "UNSAFE_DIRECTORY", ExitStatus.PERMISSION

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is not safe to use: {reason}.",
            "Correct its owner and mode, or choose another directory.",
            path=path,
        )


class ReadOnly(ToolError):
    code, exit_status = "READ_ONLY", ExitStatus.PERMISSION

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} cannot be changed: its file system is read-only.", "Use a writable directory.", path=path
        )


class TaskNotFound(ToolError):
    code, exit_status = "TASK_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, task: str) -> None:
        super().__init__(f"There is no task {task!r}.", "`tool task list` shows the tasks there are.", task=task)


class TaskConflict(ToolError):
    """Adding is idempotent by id: the same id again has to mean the same task."""

    code, exit_status = "TASK_CONFLICT", ExitStatus.CONFLICT

    def __init__(self, task: str) -> None:
        super().__init__(
            f"The task {task!r} is already there with another body or in another queue; nothing was added.",
            "Choose another id, or leave it out to get a new one.",
            task=task,
        )


class LeaseLost(ToolError):
    """Whoever says so no longer holds the task; somebody else may."""

    code, exit_status = "LEASE_LOST", ExitStatus.CONFLICT

    def __init__(self, task: str, generation: int, actual: int, status: str) -> None:
        is_current = generation == actual
        super().__init__(
            f"Generation {generation} of the task {task!r} is over: it is "
            + (f"{status} now." if is_current else f"at generation {actual} ({status})."),
            "Drop what you did for it; claim a task again.",
            task=task,
            generation=generation,
            actual_generation=actual,
            status=status,
        )


class IdempotencyKeyReused(ToolError):
    code, exit_status = "IDEMPOTENCY_KEY_REUSED", ExitStatus.CONFLICT

    def __init__(self, key: str, *, is_fenced: bool) -> None:
        what = "this task has already written to this name" if is_fenced else f"the key {key!r} was already used"
        super().__init__(
            f"{what[0].upper()}{what[1:]}, with other arguments; nothing was changed.",
            "Give every intended write an --idempotency-key of its own, and repeat it only with the same arguments.",
            key=key,
        )


class CounterRange(ToolError):
    code, exit_status = "COUNTER_RANGE", ExitStatus.CONFLICT

    def __init__(self, counter: str, value: int, amount: int) -> None:
        super().__init__(
            f"{counter} is {value}; adding {amount} would leave what JSON carries exactly (plus or minus 2**53-1).",
            "Count in larger units, or in a new counter.",
            counter=counter,
            value=value,
        )


class StateTooNew(ToolError):
    code, exit_status = "STATE_TOO_NEW", ExitStatus.PRECONDITION

    def __init__(self, store: str, found: int, known: int) -> None:
        super().__init__(
            f"{store} was written by a newer version of the tool (schema {found}; this one knows {known}).",
            "Use the newer version; nothing was changed.",
            store=store,
            found=found,
            known=known,
        )


class StoreUnsafe(ToolError):
    """The server is set up to lose what it has promised to keep."""

    code, exit_status = "STORE_UNSAFE", ExitStatus.PRECONDITION

    def __init__(self, store: str, reason: str, suggestion: str) -> None:
        super().__init__(f"{store} must not be used: {reason}.", suggestion, store=store)


class StoreUnavailable(ToolError):
    """The store cannot be reached. Retrying is safe unless a write may have happened before the connection broke."""

    code, exit_status = "STORE_UNAVAILABLE", ExitStatus.UNAVAILABLE

    def __init__(self, store: str, reason: str, *, is_outcome_unknown: bool = False) -> None:
        super().__init__(
            f"{store} cannot be reached ({reason})."
            + (" Whether the change was made before that is unknown." if is_outcome_unknown else ""),
            "Look before repeating it; with an --idempotency-key repeating is always safe."
            if is_outcome_unknown
            else "Retry; `tool doctor` tells more about the store.",
            store=store,
            outcome="unknown" if is_outcome_unknown else None,
        )
        self.retry_after_ms = None if is_outcome_unknown else 1000


class StoreAuthFailed(ToolError):
    code, exit_status = "STORE_AUTH_FAILED", ExitStatus.AUTH

    def __init__(self, store: str, reason: str) -> None:
        super().__init__(
            f"{store} refused us: {reason}.",
            "Put the right password into TOOL_STORE, the settings or the driver's own variables, such as PGPASSWORD.",
            store=store,
        )


class ExtraNotInstalled(ToolError):
    code, exit_status = "EXTRA_NOT_INSTALLED", ExitStatus.PRECONDITION

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the extra {extra!r}, which is not installed.",
            f"Install it: pip install 'sampletool[{extra}]'.",
            extra=extra,
        )


class ChecksFailed(ToolError):
    code, exit_status = "CHECKS_FAILED", ExitStatus.PARTIAL

    def __init__(self, failed: list[str], data: Any) -> None:
        super().__init__(
            f"{len(failed)} failed: {', '.join(failed)}.", "The data tells why each of them failed.", failed=failed
        )
        self.data = data


class TimedOut(ToolError):
    code, exit_status = "TIMEOUT", ExitStatus.TIMEOUT

    def __init__(self, timeout_seconds: float) -> None:
        super().__init__(
            f"The call did not finish within --timeout {say_duration(timeout_seconds)} and was stopped.",
            "Allow it more time; what it had started was ended and rolled back.",
            timeout_ms=round(timeout_seconds * 1000),
        )


class Interrupted(ToolError):
    code = "INTERRUPTED"

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        self.exit_status = ExitStatus(128 + signal_number)
        name = signal.Signals(signal_number).name
        super().__init__(
            f"Stopped by {name}.", "Run it again; locks are released and nothing is half done.", signal=name
        )


class NoSpace(ToolError):
    code, exit_status = "NO_SPACE", ExitStatus.INTERNAL

    def __init__(self, path: str) -> None:
        super().__init__(
            f"There is no space left to write {path}.",
            "Free some space and run it again; what was there is untouched.",
            path=path,
        )


class IoFailure(ToolError):
    code, exit_status = "IO_ERROR", ExitStatus.INTERNAL

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} could not be read or written: {reason}.", "Check the disk and the path.", path=path)


class InternalError(ToolError):
    code, exit_status = "INTERNAL_ERROR", ExitStatus.INTERNAL

    def __init__(self, kind: str, report: str | None) -> None:
        where = f"The report is in {report}." if report else "The report is on stderr."
        super().__init__(
            f"The tool failed unexpectedly ({kind}). {where}",
            "This is a bug; please report it with the report.",
            report=report,
        )


def from_os_error(error: OSError, path: str | None = None) -> ToolError:
    """What the operating system said, as one of ours."""
    where = os.fsdecode(path or error.filename or "the file")
    reason = error.strerror or str(error)
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return NoSpace(where)
        case errno.EROFS:
            return ReadOnly(where)
        case errno.EACCES | errno.EPERM:
            return PermissionDenied(where, reason.lower())
        case errno.ENOENT:
            return FileNotFound(where)
        case errno.ELOOP | errno.EISDIR | errno.ENOTDIR | errno.ENXIO | errno.ENAMETOOLONG:
            return UnsafePath(where, reason.lower())
        case _:
            return IoFailure(where, reason.lower())
