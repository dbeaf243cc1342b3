"""Every expected failure: a type that holds the facts and makes its own sentence from them, once.

A code is a promise to callers; renaming one is a breaking change. What is not listed here is a surprise: it
travels to the door and becomes INTERNAL_ERROR with a crash report.
"""

import signal
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

from ..program import PROGRAM, WORKSPACE_FILE
from .duration import say_duration
from .exit_status import ExitStatus
from .text import quoted


class ToolError(Exception):
    """An expected failure. `data` carries what was done before it failed."""

    code: ClassVar[str]
    exit_status: ExitStatus
    retryable: ClassVar[bool] = False
    """Whether it may be worth retrying; one that is not has no `retry_after_ms`."""
    retry_after_ms: int | None = None

    def __init__(self, message: str, suggestion: str, *, data: Any = None, **context: Any) -> None:
        super().__init__(message)
        self.message = message
        self.suggestion = suggestion
        self.data = data
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


class Mistakes(ToolError):
    """All that is wrong with the input, told at once."""

    exit_status: ExitStatus = ExitStatus.USAGE

    def __init__(self, mistakes: list[Mistake], suggestion: str) -> None:
        first, *others = (mistake.message.rstrip(".") for mistake in mistakes)
        said = "; ".join([first, *map(_inside, others)])
        hints = " ".join(dict.fromkeys(mistake.suggestion for mistake in mistakes if mistake.suggestion))
        super().__init__(f"{said}.", hints or suggestion)
        self.mistakes = mistakes

    def describe(self) -> dict[str, Any]:
        errors = [{k: v for k, v in asdict(mistake).items() if v is not None} for mistake in self.mistakes]
        return {**super().describe(), "errors": errors}


def _inside(message: str) -> str:
    """A sentence behind another one: `No such option` goes on as `no such option`."""
    return message[:1].lower() + message[1:] if message[1:2].islower() or message[1:2] == " " else message


class UsageMistakes(Mistakes):
    """The command line does not parse."""

    code = "USAGE_ERROR"

    def __init__(self, mistakes: list[Mistake], command_path: str, usage: str = "") -> None:
        written = f"Write {usage}; see" if usage else "See"
        super().__init__(mistakes, f"{written} `{command_path} --help`.")


class InvalidValues(Mistakes):
    """The command line parses, but values in it, or in what it names, are not what they have to be."""

    code = "VALIDATION_ERROR"

    def __init__(self, *mistakes: Mistake, suggestion: str = "Correct the values and run it again.") -> None:
        super().__init__(list(mistakes), suggestion)


class NoWorkspace(ToolError):
    """It needs a workspace, and no directory here or above is one."""

    code, exit_status = "NO_WORKSPACE", ExitStatus.PRECONDITION

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"There is no {WORKSPACE_FILE} in {directory} or above it.",
            "Run it inside a workspace, or name one with --cwd.",
            directory=directory,
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


class KeyNotFound(ToolError):
    """The key has no value."""

    code, exit_status = "KEY_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, key: str, where: str, known: list[str], listing: str = f"{PROGRAM} config list") -> None:
        suggestion = did_you_mean(key, known) or f"`{listing}` shows the keys there are."
        super().__init__(f"{key} is not set in {where}.", suggestion, key=key)


class LockNotFound(ToolError):
    """Nobody has used a lock of that name here."""

    code, exit_status = "LOCK_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, lock: str, known: list[str], held: list[str]) -> None:
        used = f"Held now: {', '.join(held)}." if held else "No lock is held here."
        super().__init__(f"There is no lock {quoted(lock)} here.", did_you_mean(lock, known) or used, lock=lock)


class CommandNotFound(ToolError):
    """There is no such command, or no such program to run."""

    code, exit_status = "COMMAND_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, command: str, known: list[str] | None = None, *, of: str = "") -> None:
        """Without the known ones it is no command of ours, but a program that was to be run."""
        if known is None:
            message = f"The command{of} cannot be run: there is no program {quoted(command)}."
            suggestion = "Install it, put its directory on the PATH, or name it by its path; aliases are not seen."
        else:
            message = f"There is no command {quoted(command)}."
            suggestion = did_you_mean(command, known) or f"The commands are {', '.join(known)}."
        super().__init__(message, suggestion, command=command)


class VersionConflict(ToolError):
    """It is no longer at the version that --if-version names."""

    code, exit_status = "VERSION_CONFLICT", ExitStatus.CONFLICT

    def __init__(self, what: str, expected: str | int, actual: str | int, *, kind: str = "key") -> None:
        found = f"it is at {actual}" if actual else "it is not there (version 0)"
        super().__init__(
            f"{what} has changed since you read it: expected version {expected}, {found}.",
            "Read it again, apply your change to what is there now, and retry with its version.",
            **{kind: what, "expected": expected, "actual": actual},
        )


class ChecksFailed(ToolError):
    """Some checks failed; the data tells which, and why."""

    code, exit_status = "CHECKS_FAILED", ExitStatus.PARTIAL

    def __init__(self, failed: list[str], data: Any) -> None:
        message = f"{len(failed)} failed: {', '.join(failed)}."
        super().__init__(message, "The data tells why each of them failed.", data=data, failed=failed)


class TimedOut(ToolError):
    """The call did not finish within --timeout, and was stopped."""

    code, exit_status = "TIMEOUT", ExitStatus.TIMEOUT

    def __init__(self, timeout_seconds: float, waited_for: ToolError | None = None) -> None:
        """`waited_for` tells what it was waiting for when the time was up."""
        message = f"The call did not finish within --timeout {say_duration(timeout_seconds)} and was stopped."
        super().__init__(
            f"{message} {waited_for.message}" if waited_for else message,
            "Allow it more time; what it had started was ended.",
            **{**(waited_for.context if waited_for else {}), "timeout_ms": round(timeout_seconds * 1000)},
        )


class Interrupted(ToolError):
    """A signal ended the call; the status is 128 and the signal's number."""

    code = "INTERRUPTED"

    def __init__(self, signal_number: int) -> None:
        self.signal_number = signal_number
        self.exit_status = ExitStatus(128 + signal_number)
        name = signal.Signals(signal_number).name
        suggestion = "Run it again; locks are released and nothing is half done."
        super().__init__(f"Stopped by {name}.", suggestion, signal=name)


class CommandIncomplete(ToolError):
    """A command file that somebody has just begun."""

    code, exit_status = "COMMAND_INCOMPLETE", ExitStatus.INTERNAL

    def __init__(self, file: str, missing: list[str]) -> None:
        super().__init__(
            f"{file} has no {' and no '.join(missing)}.",
            "A command file provides `promise` and `command`; docs/kit/architecture.md has a whole one.",
            file=file,
        )


class InternalError(ToolError):
    """A fault of the tool itself; the message names the report."""

    code, exit_status = "INTERNAL_ERROR", ExitStatus.INTERNAL

    def __init__(self, kind: str, report: str | None) -> None:
        where = f"The report is in {report}." if report else "The report is on stderr."
        super().__init__(
            f"The tool failed unexpectedly ({kind}). {where}",
            "This is a bug; please report it with the report.",
            report=report,
        )
