"""Every expected failure: a type that holds the facts, and one sentence that is made from them.

A code is a promise to callers; renaming one is a breaking change. What is not a ToolError is a surprise: it becomes
INTERNAL_ERROR with a crash report.
"""

from difflib import get_close_matches
from typing import Any, ClassVar, NamedTuple

from ..program import PACKAGE, PROGRAM, WORKSPACE_FILE

_LISTED = 10


class ExitStatus:
    """Scripts branch on these numbers, so none is ever changed. An enumeration would cost each call 0.25 ms."""

    OK = 0
    INTERNAL = 1
    USAGE = 2
    PARTIAL = 3
    PRECONDITION = 4
    NOT_FOUND = 5
    CONFLICT = 6
    PERMISSION = 7
    AUTH = 8
    TIMEOUT = 10
    UNAVAILABLE = 12
    LOCK_HELD = 75
    """EX_TEMPFAIL of sysexits.h: the shell's word for "try again"."""


def category(status: int) -> str:
    """The name callers read in the manifest; what a signal ends is INTERRUPTED."""
    return "INTERRUPTED" if status > 128 else next(name for name, one in vars(ExitStatus).items() if one == status)


INTERRUPTED = (129, 130, 131, 143)
"""HUP, INT, QUIT and TERM: 128 and the number of the signal."""


class ErrorKind(NamedTuple):
    """What all errors with one code have in common."""

    code: str
    exit_status: int
    meaning: str
    retryable: bool = False
    """Whether it may be worth retrying. An error that is not has no `retry_after_ms`."""


class ToolError(Exception):
    """An expected failure. Its facts fill the braces of the sentence and of the advice, and are the context.

    `message` and `suggestion` replace the sentence and the advice where a single failure needs its own. `data` is what
    was done before it failed.
    """

    code: str
    exit_status: int
    sentence: ClassVar[str] = ""
    advice: ClassVar[str] = ""
    retryable: ClassVar[bool] = False
    """Whether it may be worth retrying; one that is not has no `retry_after_ms`."""
    retry_after_ms: int | None = None

    def __init__(self, message: str = "", suggestion: str = "", *, data: Any = None, **facts: Any) -> None:
        names = {"PROGRAM": PROGRAM, "PACKAGE": PACKAGE, "WORKSPACE_FILE": WORKSPACE_FILE}
        said = names | {name: _listed(fact) if isinstance(fact, list) else fact for name, fact in facts.items()}
        self.message = message or self.sentence.format(**said)
        self.suggestion = suggestion or self.advice.format(**said)
        super().__init__(self.message)
        self.data = data
        self.context = {name: fact for name, fact in facts.items() if fact is not None}

    @classmethod
    def kind(cls) -> ErrorKind:
        """Return the code and the exit code of this class; the first line of its docstring is the meaning."""
        meaning = (cls.__doc__ or "").partition("\n")[0]
        return ErrorKind(cls.code, cls.exit_status, meaning, cls.retryable)

    def describe(self) -> dict[str, Any]:
        described = {
            "code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
            "retryable": self.retry_after_ms is not None,
            "exit_code": self.exit_status,
            "context": self.context,
            "retry_after_ms": self.retry_after_ms,
        }
        return {name: fact for name, fact in described.items() if fact is not None}


def _listed(names: list[Any]) -> str:
    return ", ".join([*map(str, names[:_LISTED]), *(["…"] if len(names) > _LISTED else [])])


def did_you_mean(word: str, known: list[str], nearness: float = 0.6) -> str:
    """`Did you mean 'x'?`, or an empty text when nothing is near. The dashes of options would make all of them near."""
    plain = {name.lstrip("-"): name for name in known}
    close = get_close_matches(word.lstrip("-"), plain, n=3, cutoff=nearness)
    return f"Did you mean {' or '.join(repr(plain[match]) for match in close)}?" if close else ""


class Mistake(NamedTuple):
    """One thing wrong with the caller's input."""

    param: str
    code: str
    message: str
    value: str | None = None
    suggestion: str | None = None


class InvalidValues(ToolError):
    """The command line parses, but values in it, or in what it names, are not what they have to be."""

    code, exit_status = "VALIDATION_ERROR", ExitStatus.USAGE

    def __init__(self, *mistakes: Mistake, suggestion: str = "Correct the values and run it again.") -> None:
        said = "; ".join(mistake.message.rstrip(".") for mistake in mistakes)
        hints = " ".join(dict.fromkeys(mistake.suggestion for mistake in mistakes if mistake.suggestion))
        super().__init__(f"{said}.", hints or suggestion)
        self.mistakes = [*mistakes]

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "errors": self.mistakes}


class UsageMistakes(InvalidValues):
    """The command line does not parse."""

    code = "USAGE_ERROR"

    def __init__(self, mistakes: list[Mistake], command_path: str, usage: str = "") -> None:
        written = f"Write {usage}; see" if usage else "See"
        super().__init__(*mistakes, suggestion=f"{written} `{command_path} --help`.")


class NoWorkspace(ToolError):
    """It needs a workspace, and no directory here or above is one."""

    code, exit_status = "NO_WORKSPACE", ExitStatus.PRECONDITION
    sentence = "There is no {WORKSPACE_FILE} in {directory} or above it."
    advice = "Run it inside a workspace, or name one with --cwd."


class KeyNotFound(ToolError):
    """The key has no value."""

    code, exit_status = "KEY_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = "{key} is not set in {where}."
    advice = "`{PROGRAM} config list` shows the keys there are."


class LockNotFound(ToolError):
    """Nobody has used a lock of that name here."""

    code, exit_status = "LOCK_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = "There is no lock {lock!r} here."
    advice = "`{PROGRAM} lock list` shows the locks that are held."


class CommandNotFound(ToolError):
    """There is no such command, or no such program to run."""

    code, exit_status = "COMMAND_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = "There is no command {command!r}."
    advice = "`{PROGRAM} --help` shows the commands there are."


class ProgramNotFound(CommandNotFound):
    """There is no such program to run."""

    sentence = "{what} cannot be run: there is no program {command!r}."
    advice = "Install it, put its directory on the PATH, or name it by its path; aliases are not seen."


class VersionConflict(ToolError):
    """It is no longer at the version that --if-version names."""

    code, exit_status = "VERSION_CONFLICT", ExitStatus.CONFLICT
    advice = "Read it again, apply your change to what is there now, and retry with its version."

    def __init__(self, *, expected: str | int, actual: str | int, **what: str) -> None:
        """`what` is the kind and the name of the thing: key="plan"."""
        now = f"it is at {actual}" if actual else "it is not there (version 0)"
        message = f"{_listed([*what.values()])} has changed since you read it: expected version {expected}, {now}."
        super().__init__(message, expected=expected, actual=actual, **what)


class ExtraNotInstalled(ToolError):
    """It needs a Python package that is optional and not installed."""

    code, exit_status = "EXTRA_NOT_INSTALLED", ExitStatus.PRECONDITION
    sentence = "{purpose} needs the extra {extra!r}, which is not installed."
    advice = "Install it: {installer} '{PACKAGE}[{extra}]'."


class ChecksFailed(ToolError):
    """Some checks failed; the data tells which, and why."""

    code, exit_status = "CHECKS_FAILED", ExitStatus.PARTIAL
    sentence = "{count} failed: {failed}."
    advice = "The data tells why each of them failed."


class CommandIncomplete(ToolError):
    """A command file that has been begun and not finished."""

    code, exit_status = "COMMAND_INCOMPLETE", ExitStatus.INTERNAL
    sentence = "{file} does not provide {missing}."
    advice = "A command file provides `spec` and `command`; docs/kit/how-to.md has a whole one."


class InternalError(ToolError):
    """A fault of the tool itself; the message names the report."""

    code, exit_status = "INTERNAL_ERROR", ExitStatus.INTERNAL
    sentence = "The tool failed unexpectedly ({kind}). The report is {where}."
    advice = "This is a bug; please report it with the report."

    def __init__(self, kind: str, report: str | None) -> None:
        super().__init__(kind=kind, report=report, where=f"in {report}" if report else "on stderr")
