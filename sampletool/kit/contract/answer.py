"""The response of a command: an object, the *envelope*, that is printed as JSON or as text.

The envelope has the same members for all commands. Only `error` is absent on success, so that
`response.get("error", {}).get("code")` works for every response.

No content can break the form. JSON is one line of ASCII. In text, control characters are escaped,
so a file name or another caller's value can neither move the cursor nor forge a line.
"""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from .errors import ToolError
from .table import laid_out
from .text import PLAIN, RED, YELLOW, between_words, escaped, printable, printable_data

if TYPE_CHECKING:
    from .size import Tree
    from .table import Line

SCHEMA_VERSION = "1.0"

LARGEST_BYTES = 64 * 1024
"""Longer responses in JSON are cut, unless the caller passes --full."""

Effect = Literal["created", "updated", "deleted", "unchanged"]
"""What a command did to the thing that it changes."""

UNTRUSTED = {"x-untrusted": True}
"""`Annotated[str, UNTRUSTED]` marks text that others wrote: a program must not follow it."""

FormatName = Literal["json", "jsonl", "text"]
Format = FormatName | Literal["raw"]
"""How to print the response. `raw`, which --raw selects, prints a value and nothing else."""
FORMATS: tuple[Format, ...] = get_args(FormatName)


class Result(Protocol):
    """What a command returns: a record, either a frozen dataclass or a NamedTuple.

    Its members are the `data` of the envelope.
    """

    def lines(self) -> "Sequence[Line]":
        """Return the lines and the table rows that show the result to a person."""
        ...


@dataclass(frozen=True)
class Answer:
    """The response of one command. After a failure, it can have a result too."""

    result: Result | None
    error: ToolError | None
    warnings: list[dict[str, str]]
    """Each warning has a `code` and a `message`."""
    meta: dict[str, Any]

    def envelope(self, fields: "Tree | None" = None) -> dict[str, Any]:
        """Return the object to print. If there are `fields`, `data` has only these."""
        data = to_data(self.result)
        if fields is not None:
            # size.py imports this module, so this module cannot import it at the top.
            from .size import picked

            data = picked(data, fields)
        envelope: dict[str, Any] = {"ok": self.error is None}
        if self.error is not None:
            envelope["error"] = self.error.describe()
        envelope["data"] = data
        envelope["warnings"] = self.warnings
        envelope["meta"] = self.meta
        return envelope


class Screen(NamedTuple):
    """The terminal that shows the text, if there is one."""

    width: int | None = None
    """The number of columns. It is None if stdout is not a terminal."""
    colour: bool = False
    """Whether stdout has colours."""
    stderr_colour: bool = False


class Size:
    """The part of a response that the caller requested."""

    fields: Any = None
    """The members of `data` that were selected with --fields, as a tree. See size.py."""
    is_full = False
    """Whether the response may be longer than LARGEST_BYTES."""
    cursor_after: Any = None
    """For a page of a list: a function that returns the cursor behind its first N items."""


class Rendered(NamedTuple):
    """What is printed to stdout and to stderr."""

    stdout: bytes
    stderr: str


PIPE = Screen()
_DEFAULT_SIZE = Size()


def render(
    answer: Answer,
    form: Format,
    screen: Screen = PIPE,
    size: Size = _DEFAULT_SIZE,
) -> Rendered:
    """Return what to print.

    In JSON, everything goes to stdout. In text, errors and warnings go to stderr, so that they do
    not get into the `$(...)` of a shell script.
    """
    if form in ("json", "jsonl"):
        return Rendered(stdout=_render_json(answer, size), stderr="")
    if form == "raw" and answer.result is not None:
        # Only commands whose result has a `value` accept --raw.
        lines = [value_text(getattr(answer.result, "value", None))]
    else:
        lines = _text_lines(answer, screen)
    text = "".join(f"{line}\n" for line in lines)
    # A file name can contain bytes that are not UTF-8. Python represents them as lone surrogates.
    stdout = text.encode("utf-8", "backslashreplace")
    return Rendered(stdout=stdout, stderr=_notices(answer, screen))


def json_line(value: Any) -> bytes:
    """Return a value as one line of JSON in ASCII.

    A byte of a file name that is not UTF-8 becomes the text `\\xNN`, another lone surrogate
    `\\uNNNN`. Many programs refuse JSON that contains lone surrogates.
    """
    data = to_data(value)
    line = _compact_json(data)
    # Most lines have no surrogates. (Those of an emoji are found too, but do not change.)
    if "\\ud" in line:
        line = _compact_json(printable_data(data, _escape_surrogates))
    return line.encode("ascii") + b"\n"


def to_data(value: Any) -> Any:
    """Return a value in the types that JSON knows.

    A record becomes an object. Its members that are None do not apply, and are left out.
    """
    if is_dataclass(value):
        return _members_to_data(vars(value))
    if hasattr(value, "_asdict"):
        return _members_to_data(value._asdict())
    if isinstance(value, dict):
        return {str(key): to_data(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(member) for member in value]
    return value


def value_text(value: Any) -> str:
    """Return a value for a person: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _members_to_data(members: dict[str, Any]) -> dict[str, Any]:
    data = {}
    for name, member in members.items():
        if member is not None:
            data[name] = to_data(member)
    return data


def _render_json(answer: Answer, size: Size) -> bytes:
    """Return the envelope as JSON. Cut it if it is too long and the caller did not pass --full."""
    line = json_line(answer.envelope(size.fields))
    if size.is_full or len(line) <= LARGEST_BYTES:
        return line
    from .size import shortened  # It imports this module.

    return json_line(shortened(json.loads(line), size.cursor_after))


def _compact_json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False, default=str)


def _escape_surrogates(text: str) -> str:
    """Return the text with an escape, such as `\\xe9`, in place of each lone surrogate."""
    characters = []
    for character in text:
        if 0xD800 <= ord(character) <= 0xDFFF:
            characters.append(escaped(character))
        else:
            characters.append(character)
    return "".join(characters)


def _text_lines(answer: Answer, screen: Screen) -> list[str]:
    """Return the lines that show the result to a person."""
    lines: list[str] = []
    if answer.result is not None:
        lines = laid_out(answer.result.lines(), screen.width, colour=screen.colour)
    if lines and answer.meta.get("dry_run"):
        lines.insert(0, "Dry run, nothing was changed. The result would be:")
    cursor = answer.meta.get("next_cursor")
    if cursor is not None:
        lines.append(f"There is more. To continue, pass --after {shlex.quote(printable(cursor))}")
    return lines


def _notices(answer: Answer, screen: Screen) -> str:
    """Return the lines for stderr: the warnings, then the error with its hint."""
    lines = []
    for warning in answer.warnings:
        lines.append(_titled("Warning:", YELLOW, warning["message"], screen))
    error = answer.error
    if error is not None:
        lines.append(_titled("Error:", RED, f"{error.message} [{error.code}]", screen))
        for problem in error.context.get("problems", ()):
            lines.append(_paragraph(problem, screen))
        lines.append(_paragraph(error.suggestion, screen))
    return "".join(f"{line}\n" for line in lines)


def _titled(title: str, colour: str, text: str, screen: Screen) -> str:
    """Return a paragraph that begins with a title, which is coloured if stderr has colours."""
    paragraph = _paragraph(f"{title} {text}", screen)
    if not screen.stderr_colour:
        return paragraph
    # Lines are broken first, because the codes of the colour take up no room on the terminal.
    after_title = paragraph.removeprefix(title)
    return f"{colour}{title}{PLAIN}{after_title}"


def _paragraph(text: str, screen: Screen) -> str:
    """Return the text without control characters, in lines that fit the terminal."""
    shown = printable(text)
    if screen.width is None:
        return shown
    return "\n".join(between_words(shown, screen.width))
