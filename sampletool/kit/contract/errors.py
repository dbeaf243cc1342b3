"""Expected failures: one class for each reason, with a code, an exit code, a message and a hint.

* The *code*, such as `KEY_NOT_FOUND`, is for programs. Callers rely on it, so renaming a code is a
  breaking change.
* The *message* says what failed and why. The *hint* says what to do about it.
* The *facts* are the values that belong to one failure, such as the name of the missing key.

A command raises an error of this kind, an OSError, or an exception of `kit/safety`. Any other
exception is a bug in the tool, and is reported as INTERNAL_ERROR. See expected.py.
"""

import json
import re
from collections.abc import Sequence
from difflib import get_close_matches
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Self

from ..program import PACKAGE, PROGRAM, WORKSPACE_FILE, tracker_address
from .text import MAX_SENTENCE_CHARACTERS, shorten, shorten_sentence

_MAX_LISTED = 10

_MAX_MISTAKES = 100
"""How many mistakes one error has. A command line of 2 MB can have a million of them."""

_MAX_MISTAKE_BYTES = 32 * 1024
"""The size of the mistakes of one error, as JSON. There are fewer than 100 if they are long."""

USUAL_RETRY_MS = 1_000
"""How long to wait before a retry, if nothing more is known about the cause."""

_MAX_PATH_CHARACTERS = 4096
"""PATH_MAX of Linux. No file has a path of this length."""

_COMMAND_IN_HINT = re.compile(f"`({re.escape(PROGRAM)} [^`]+)`")
_WORD_TO_FILL_IN = re.compile(r"\b[A-Z]{2,}\b|\.\.\.|…|\[")
_ONE_PROPOSAL = re.compile(r"Did you mean '(?P<word>[^']*)'\?")

_CONSTANT_FACTS = {"PROGRAM": PROGRAM, "PACKAGE": PACKAGE, "WORKSPACE_FILE": WORKSPACE_FILE}
"""The values that every message and hint can use, in addition to the facts of the failure."""


class ExitStatus(IntEnum):
    """The exit codes of the tool. Scripts rely on these numbers, so they never change."""

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
    """EX_TEMPFAIL in sysexits.h, which means "try again later"."""


SIGNAL_BASE = 128
"""A shell reports 128 plus the number of the signal for a process that was ended by a signal."""

INTERRUPTED = (129, 130, 131, 143)
"""The exit codes after HUP, INT, QUIT and TERM."""


def category(exit_code: int) -> str:
    """Return the name of an exit code: a member of ExitStatus, or INTERRUPTED after a signal."""
    if exit_code > SIGNAL_BASE:
        return "INTERRUPTED"
    return ExitStatus(exit_code).name


class ErrorKind(NamedTuple):
    """What the documentation says about all errors that have the same code."""

    code: str
    exit_status: int
    meaning: str
    retryable: bool = False
    """Whether a retry can succeed. Then most of these errors have a `retry_after_ms`.

    A single failure may still not be retried, for example if its outcome is unknown.
    """


class ToolError(Exception):
    """A failure that the tool expects, with everything that the response says about it.

    A subclass sets the class attributes. The first line of its docstring is the meaning of the code
    in the documentation. In `sentence` and `advice`, a name in braces stands for a fact. The facts
    are the keyword arguments, and the `context` in the response:

        class KeyNotFound(ToolError):
            code, exit_status = "KEY_NOT_FOUND", ExitStatus.NOT_FOUND
            sentence = "{key} is not set."
            advice = "To list the keys, run `{PROGRAM} config list`."

        raise KeyNotFound(key="jobs")
    """

    code: str
    exit_status: int
    sentence: ClassVar[str] = ""
    """The template of the message."""
    advice: ClassVar[str] = ""
    """The template of the hint."""
    retry_after_ms: int | None = None
    """How long to wait before a retry, such as USUAL_RETRY_MS. It is None if a retry cannot help.

    This alone decides what the manifest says about the class, and what the response says about one
    failure. A single failure can have another value: see `with_retry_after`.
    """

    def __init__(
        self,
        message: str = "",
        suggestion: str = "",
        *,
        data: Any = None,
        **facts: Any,
    ) -> None:
        """Fill the templates of the class: `sentence` for the message, and `advice` for the hint.

        The `facts` replace the names in braces, and are the `context` in the response. A fact that
        is None is left out there. A `message` or a `suggestion` replaces what the template
        says. `data` is the result of the work that was done before the failure.

        Long values are shortened here, for all errors. Otherwise, an error would repeat all of an
        argument of 100 KB, often several times.
        """
        short_facts = {name: _shorten_fact(fact) for name, fact in facts.items()}
        if not message:
            message = fill_template(self.sentence, short_facts)
        if not suggestion:
            suggestion = fill_template(self.advice, short_facts)
        self.message = shorten_sentence(message)
        self.suggestion = shorten_sentence(suggestion)
        self.data = data
        self.context = {name: fact for name, fact in short_facts.items() if fact is not None}
        super().__init__(self.message)

    def with_data(self, data: Any) -> Self:
        """Set the result of the work that was done before the failure, and return this error."""
        self.data = data
        return self

    def with_hint(self, hint: str) -> Self:
        """Replace the hint, and return this error."""
        self.suggestion = shorten_sentence(hint)
        return self

    def with_paths_in_hint(self, hint: str) -> Self:
        """Replace the hint with one that stays whole, and return this error.

        A path that was shortened would be of no use. The system limits the length of a path, so use
        this for a few paths of existing files, and not for values that a caller has typed.
        """
        self.suggestion = hint
        return self

    def with_retry_after(self, milliseconds: int | None) -> Self:
        """Replace the time to wait before a retry, and return this error.

        Use None if this failure, unlike others of its class, may not be retried. If a class has
        failures of both kinds, give the class itself a `retry_after_ms`.
        """
        self.retry_after_ms = milliseconds
        return self

    def with_kept_copy(self, path: str, hint: str) -> Self:
        """Name a copy that has the user's work, in a fact and in a new hint. Return this error."""
        self.context["copy"] = path
        return self.with_paths_in_hint(hint)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how pickle copies the error, which a worker process sends to its coordinator."""
        # By default, pickle would call __init__ with the message alone, without the facts.
        new = type(self).__new__
        return new, (type(self), self.message), self.__dict__

    @classmethod
    def kind(cls) -> ErrorKind:
        """Return what the documentation says about this class of errors.

        It shows the first line of the docstring of the class to users.
        """
        docstring = cls.__doc__ or ""
        return ErrorKind(
            code=cls.code,
            exit_status=cls.exit_status,
            meaning=docstring.partition("\n")[0],
            retryable=cls.retry_after_ms is not None,
        )

    def describe(self) -> dict[str, Any]:
        """Return the member `error` of the response."""
        described = {
            "code": self.code,
            "message": self.message,
            "suggestion": self.suggestion,
            "retryable": self.retry_after_ms is not None,
            # This is the name in the response. The attribute has the name of the enum ExitStatus.
            "exit_code": self.exit_status,
            "context": self.context,
        }
        described |= _ready_to_use(self.suggestion)
        if self.retry_after_ms is not None:
            described["retry_after_ms"] = self.retry_after_ms
        return described


def _shorten_fact(fact: Any) -> Any:
    """Return the fact, with long texts shortened."""
    if isinstance(fact, list):
        return [_shorten_item(item) for item in fact]
    if not isinstance(fact, str):
        return fact
    # A program may want to open the file, so its path stays whole.
    may_be_a_file = fact.startswith("/") and len(fact) < _MAX_PATH_CHARACTERS
    if may_be_a_file:
        return fact
    return shorten(fact)


def _shorten_item(item: Any) -> Any:
    """Return an item of a list, which can be a sentence, with a long text shortened."""
    if isinstance(item, str):
        return shorten(item, MAX_SENTENCE_CHARACTERS)
    return item


def fill_template(template: str, facts: dict[str, Any]) -> str:
    """Return the template with the facts in place of the names in braces.

    Every template can also use the names {PROGRAM}, {PACKAGE} and {WORKSPACE_FILE}. A list becomes
    one text with its first items. Raise KeyError if the template names a fact that is missing.
    """
    values: dict[str, Any] = dict(_CONSTANT_FACTS)
    for name, fact in facts.items():
        if isinstance(fact, list):
            values[name] = _join_first(fact)
        else:
            values[name] = fact
    return template.format(**values)


def _join_first(items: list[Any]) -> str:
    """Return the first items, separated by commas, and an ellipsis if there are more."""
    words = [str(item) for item in items[:_MAX_LISTED]]
    if len(items) > _MAX_LISTED:
        words.append("…")
    return ", ".join(words)


def did_you_mean(word: str, known: list[str], nearness: float = 0.6) -> str:
    """Return `Did you mean 'x'?` with up to three known words, or "" if none is similar.

    `nearness` is how similar they must be, from 0 (all words are) to 1 (only the word itself is).
    """
    # Compare options without their dashes. Otherwise, the dashes make all short options similar.
    known_by_bare_word = {name.lstrip("-"): name for name in known}
    bare_word = word.lstrip("-")
    matches = get_close_matches(bare_word, known_by_bare_word, n=3, cutoff=nearness)
    if not matches:
        return ""
    proposals = [repr(known_by_bare_word[match]) for match in matches]
    return f"Did you mean {' or '.join(proposals)}?"


def _ready_to_use(hint: str) -> dict[str, str]:
    """Return what a program can use without reading the hint: a command to run, or a correct word.

    It has no `fix_command` if the hint names several commands, or one with words to fill in.
    """
    found = {}
    commands = set(_COMMAND_IN_HINT.findall(hint))
    if len(commands) == 1:
        command = commands.pop()
        is_complete = _WORD_TO_FILL_IN.search(command) is None and not command.endswith("--help")
        if is_complete:
            found["fix_command"] = command
    corrected_input = _only_proposal(hint)
    if corrected_input is not None:
        found["corrected_input"] = corrected_input
    return found


def _only_proposal(hint: str | None) -> str | None:
    """Return the word in a hint from did_you_mean(), if it proposes only one."""
    match = _ONE_PROPOSAL.search(hint or "")
    return None if match is None else match["word"]


class Mistake(NamedTuple):
    """One thing that is wrong with the caller's input."""

    param: str
    """The argument, the option, the setting or the variable with the wrong value."""
    code: str
    message: str
    value: str | None = None
    suggestion: str | None = None
    corrected_input: str | None = None
    """The input that was probably meant, if there is only one such input.

    By default, this is the only word that the suggestion proposes.
    """

    def shortened(self) -> "Mistake":
        """Return the mistake with long values shortened."""
        value = self.value
        if value is not None:
            value = shorten(value)
        suggestion = self.suggestion
        if suggestion is not None:
            suggestion = shorten_sentence(suggestion)
        corrected_input = self.corrected_input
        if corrected_input is None:
            corrected_input = _only_proposal(suggestion)
        return self._replace(
            # The name of an unknown option comes from the caller too.
            param=shorten(self.param),
            message=shorten_sentence(self.message),
            value=value,
            suggestion=suggestion,
            corrected_input=corrected_input,
        )


class InvalidValues(ToolError):
    """A value on the command line, in a variable or in an input file is invalid."""

    code, exit_status = "VALIDATION_ERROR", ExitStatus.USAGE

    def __init__(
        self,
        *mistakes: Mistake,
        message: str = "",
        suggestion: str = "Correct the values, then run the command again.",
        **facts: Any,
    ) -> None:
        """Report all mistakes together, so that the caller can correct them at once.

        The error has up to 100 mistakes, and fewer if they are long.

        `message` replaces the messages of the mistakes. `suggestion` is shown only if no mistake
        has a suggestion of its own.
        """
        shown_mistakes = _first_mistakes(mistakes)
        if not message:
            left_out = len(mistakes) - len(shown_mistakes)
            message = _join_messages(shown_mistakes, left_out)
        own_suggestions = _suggestions_of(shown_mistakes)
        if own_suggestions:
            suggestion = " ".join(own_suggestions)
        super().__init__(message, suggestion, **facts)
        self.mistakes = shown_mistakes

    def describe(self) -> dict[str, Any]:
        """Return the member `error` of the response, with all mistakes in `errors`."""
        described = super().describe()
        if len(self.mistakes) == 1 and self.mistakes[0].corrected_input is not None:
            described["corrected_input"] = self.mistakes[0].corrected_input
        described["errors"] = self.mistakes
        return described


def _first_mistakes(mistakes: Sequence[Mistake]) -> list[Mistake]:
    """Return the first mistakes, shortened. There is at least one, if there are any."""
    first: list[Mistake] = []
    size_bytes = 0
    for mistake in mistakes[:_MAX_MISTAKES]:
        shortened = mistake.shortened()
        size_bytes += len(json.dumps(shortened._asdict()))
        if size_bytes > _MAX_MISTAKE_BYTES and first:
            break
        first.append(shortened)
    return first


def _join_messages(mistakes: Sequence[Mistake], left_out: int) -> str:
    """Return one sentence with the messages of the mistakes, and how many were left out."""
    messages = [mistake.message.rstrip(".") for mistake in mistakes]
    if left_out > 0:
        messages.append(f"and {left_out} more mistakes")
    return "; ".join(messages) + "."


def _suggestions_of(mistakes: Sequence[Mistake]) -> list[str]:
    """Return the suggestions of the mistakes, each once, in their order."""
    suggestions = []
    for mistake in mistakes:
        if mistake.suggestion and mistake.suggestion not in suggestions:
            suggestions.append(mistake.suggestion)
    return suggestions


class UsageMistakes(InvalidValues):
    """The command line cannot be parsed."""

    code = "USAGE_ERROR"

    def __init__(self, mistakes: list[Mistake], command_path: str, usage: str = "") -> None:
        """Suggest the help page of the command. If there is a `usage`, show it too."""
        suggestion = f"For help, run `{command_path} --help`."
        if usage:
            suggestion = f"Usage: `{usage}`. {suggestion}"
        super().__init__(*mistakes, suggestion=suggestion)


class NoWorkspace(ToolError):
    """The command needs a workspace, and the current directory is not in one."""

    code, exit_status = "NO_WORKSPACE", ExitStatus.PRECONDITION
    sentence = (
        "Not in a workspace: "
        "there is no {WORKSPACE_FILE} in {directory} or its parent directories."
    )  # fmt: skip
    advice = (
        "Change to a workspace, or pass --cwd DIR. "
        "To create a workspace here, run `touch {WORKSPACE_FILE}`."
    )  # fmt: skip


class KeyNotFound(ToolError):
    """The key has no value."""

    code, exit_status = "KEY_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = "{key} is not set in {where}."
    advice = "To list the keys, run `{PROGRAM} config list`."


class LockNotFound(ToolError):
    """No command has used a lock of this name here."""

    code, exit_status = "LOCK_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = 'There is no lock "{lock}" here.'
    advice = "To see which locks are held, run `{PROGRAM} lock list`."


class CommandNotFound(ToolError):
    """The tool has no such command, or there is no such program to run."""

    code, exit_status = "COMMAND_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = 'There is no command "{command}".'
    advice = "To list the commands, run `{PROGRAM} --help`."


class ProgramNotFound(CommandNotFound):
    """There is no such program to run."""

    sentence = '{what} cannot run: the program "{command}" was not found.'
    advice = (
        "Install the program, add its directory to PATH, or pass its full path. "
        "Shell aliases do not work here."
    )  # fmt: skip


class VersionConflict(ToolError):
    """The value does not have the version that --if-version requires."""

    code, exit_status = "VERSION_CONFLICT", ExitStatus.CONFLICT
    advice = (
        "Read the current value, apply your change to it, "
        "and pass the current version with --if-version."
    )  # fmt: skip

    def __init__(self, *, expected: str | int, actual: str | int, **subject: str) -> None:
        """Report that a value is at version `actual`, and not at version `expected`.

        `subject` is the value: key="plan" is shown as "plan", and becomes the fact `key`. If there
        are several facts, the message shows all of them. The version of a value that does not exist
        is 0 or "".
        """
        subject_text = " ".join(subject.values())
        exists = actual not in (0, "")
        if exists:
            difference = f"{subject_text} is at version {actual}"
        else:
            difference = f"{subject_text} does not exist"
        conflict = f"{difference}, but you passed --if-version {expected}"
        message = f"Version conflict: {conflict}. Nothing was changed."
        super().__init__(message, expected=expected, actual=actual, **subject)


class ExtraNotInstalled(ToolError):
    """The command needs an optional Python package that is not installed."""

    code, exit_status = "EXTRA_NOT_INSTALLED", ExitStatus.PRECONDITION
    sentence = '{purpose} needs the extra "{extra}", which is not installed.'
    advice = "To install it, run `{installer} '{PACKAGE}[{extra}]'`."


class ChecksFailed(ToolError):
    """Some checks failed. `data` shows which ones, and why."""

    code, exit_status = "CHECKS_FAILED", ExitStatus.PARTIAL
    sentence = "{count} failed: {failed}."
    advice = "The output shows why each of them failed. In JSON, see `data`."


class WorkerLost(ToolError):
    """A worker process was killed, or could not be started, so there is no result."""

    code, exit_status = "WORKER_LOST", ExitStatus.INTERNAL
    sentence = "Worker process {pid} was killed, so there is no result."
    advice = (
        "Run the command again. "
        "If the machine is short of memory or processes, pass a lower number with --jobs."
    )  # fmt: skip


class CommandIncomplete(ToolError):
    """A command file does not define everything that it must define."""

    code, exit_status = "COMMAND_INCOMPLETE", ExitStatus.INTERNAL
    sentence = "{file} does not define {missing}."
    advice = (
        "A command file must define `spec` and `command`. "
        "{PACKAGE}/kit/README.md has an example."
    )  # fmt: skip


class InternalError(ToolError):
    """A bug in the tool. The message names the report."""

    code, exit_status = "INTERNAL_ERROR", ExitStatus.INTERNAL
    sentence = "Something went wrong unexpectedly ({kind}). The crash report is {where}."
    advice = "This is a bug. Please report it{at_tracker}, and attach the crash report."

    def __init__(self, kind: str, report: str | None) -> None:
        """Say where the report is.

        `kind` is the name of the exception's class, such as "KeyError". `report` is the path of the
        report. It is None if the report was written to stderr.
        """
        if report is None:
            where = "on stderr"
        else:
            where = f"in {report}"
        address = tracker_address()
        at_tracker = f" at {address}" if address else ""
        suggestion = fill_template(self.advice, {"at_tracker": at_tracker})
        super().__init__(suggestion=suggestion, kind=kind, report=report, where=where)
