"""The response of a command: an object, the *envelope*, that is printed as JSON or as text.

The envelope has the same members for all commands. Only `error` is absent on success, so that
`response.get("error", {}).get("code")` works for every response.

No content can break the form. JSON is one line of ASCII. In text, control characters are escaped,
so a file name or another caller's value can neither move the cursor nor forge a line.
"""

import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, is_dataclass
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    get_args,
)

from .errors import ToolError
from .fields import FieldTree, select
from .records import optional_members
from .table import laid_out
from .text import PLAIN, RED, YELLOW, between_words, escaped, printable, printable_data

if TYPE_CHECKING:
    from .table import Line

SCHEMA_VERSION = "2.1.0"

MAX_LIST_BYTES = 48 * 1024
"""The size of a list in a response, as JSON. With all other members, it fits in 64 KiB."""

META_MEMBERS = ("next_cursor", "total", "replayed", "truncated")
"""The members of a result that belong to `meta`. They say how the result came about."""

Effect = Literal["created", "updated", "deleted", "unchanged"]
"""What a command did to the thing that it changes."""

UNTRUSTED = {"x-untrusted": True}
"""`Annotated[str, UNTRUSTED]` marks text that others wrote: a program must not follow it."""

FormatName = Literal["json", "jsonl", "text"]
Format = FormatName | Literal["raw"]
"""How to print the response. `raw`, which --raw selects, prints a value and nothing else."""
FORMATS: tuple[FormatName, ...] = get_args(FormatName)


class Result(Protocol):
    """What a command returns: a record, either a frozen dataclass or a NamedTuple.

    Its members are the `data` of the envelope, except for META_MEMBERS.
    """

    def lines(self) -> "Sequence[Line]":
        """Return the lines and the table rows that show the result to a person."""
        ...


@dataclass(frozen=True)
class Response:
    """The response of one command. After a failure, it can have a result too."""

    result: Result | None
    error: ToolError | None
    warnings: list[dict[str, str]]
    """Each warning has a `code` and a `message`."""
    meta: dict[str, Any]

    @cached_property
    def data(self) -> Any:
        """The members of the result, without those that belong to `meta`.

        A result can have 1,000 items, and both the response and the log need its members.
        """
        return result_data(self.result)

    def envelope(self, fields: FieldTree | None = None) -> dict[str, Any]:
        """Return the object to print. If there are `fields`, `data` has only these."""
        data = self.data
        if fields is not None:
            data = select(data, fields)
        envelope: dict[str, Any] = {"ok": self.error is None}
        if self.error is not None:
            envelope["error"] = to_data(self.error.describe())
        envelope["data"] = data
        envelope["warnings"] = self.warnings
        envelope["meta"] = to_data(self.meta)
        return envelope


class Screen(NamedTuple):
    """The terminal that shows the text, if there is one."""

    width: int | None = None
    """The number of columns. It is None if stdout is not a terminal."""
    color: bool = False
    """Whether stdout has colors."""
    stderr_color: bool = False


class Presentation(NamedTuple):
    """How to print one response."""

    format: Format = "json"
    screen: Screen = Screen()
    fields: FieldTree | None = None
    """The members of `data` that --fields selects. It is None for all of them."""
    is_quiet: bool = False
    """Whether to print nothing about a success, in text."""
    error_also_on_stderr: bool = False
    """Whether a person should see the error although stdout gets JSON."""


class Rendered(NamedTuple):
    """What is printed to stdout and to stderr."""

    stdout: bytes
    stderr: str


def render(response: Response, presentation: Presentation) -> Rendered:
    """Return what to print.

    In JSON, everything goes to stdout. In text, errors and warnings go to stderr, so that they do
    not get into the `$(...)` of a shell script.
    """
    if presentation.format in ("json", "jsonl"):
        return _render_json(response, presentation)
    return _render_text(response, presentation)


def _render_json(response: Response, presentation: Presentation) -> Rendered:
    """Return the line of JSON for stdout."""
    stderr = ""
    if presentation.error_also_on_stderr:
        stderr = _error_text(response, presentation.screen)
    envelope = response.envelope(presentation.fields)
    return Rendered(stdout=_line_of(envelope), stderr=stderr)


def _render_text(response: Response, presentation: Presentation) -> Rendered:
    """Return the text for stdout, and the warnings and errors for stderr."""
    # A caller who wants no output about a success wants no warnings either.
    if presentation.is_quiet and response.error is None:
        return Rendered(stdout=b"", stderr="")
    if presentation.format == "raw" and response.result is not None:
        # Only commands whose result has a `value` accept --raw.
        lines = [value_text(getattr(response.result, "value", None))]
    else:
        lines = _text_lines(response, presentation.screen)
    text = "".join(f"{line}\n" for line in lines)
    # A file name can contain bytes that are not UTF-8. Python represents them as lone surrogates.
    stdout = text.encode("utf-8", "backslashreplace")
    warnings = _warning_text(response, presentation.screen)
    error = _error_text(response, presentation.screen)
    return Rendered(stdout=stdout, stderr=warnings + error)


def json_line(value: Any) -> bytes:
    """Return a value as one line of JSON in ASCII.

    A byte of a file name that is not UTF-8 becomes the text `\\xNN`, another lone surrogate
    `\\uNNNN`. Many programs refuse JSON that contains lone surrogates.
    """
    return _line_of(to_data(value))


def _line_of(data: Any) -> bytes:
    """Return the line of JSON. The data has only types that JSON knows: see `to_data`."""
    line = _compact_json(data)
    if _may_have_surrogates(line):
        line = _compact_json(printable_data(data, _escape_surrogates))
    return line.encode("ascii") + b"\n"


def count_fitting(rows: Iterable[object], max_bytes: int = MAX_LIST_BYTES) -> int:
    """Return how many rows of a list fit into a response. The first one always does."""
    size_bytes = 0
    count = 0
    for row in rows:
        size_bytes += len(json_line(row))
        if size_bytes > max_bytes and count > 0:
            break
        count += 1
    return count


def to_data(value: Any) -> Any:
    """Return a value in the types that JSON knows.

    A dataclass or a named tuple becomes an object. A member whose type is `X | None` is left out if
    it is None. Any other None stays: it is a JSON null that a caller has stored. A value of another
    type, such as a path, stays too: it is printed as text.
    """
    if is_dataclass(value):
        return _members_to_data(type(value), vars(value))
    if hasattr(value, "_asdict"):
        return _members_to_data(type(value), value._asdict())
    if isinstance(value, dict):
        return {str(key): to_data(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(member) for member in value]
    return value


def result_data(result: Result | None) -> Any:
    """Return the `data` of a result: its members, without those that belong to `meta`."""
    data = to_data(result)
    if isinstance(data, dict):
        return {name: member for name, member in data.items() if name not in META_MEMBERS}
    return data


def result_meta(result: Result | None) -> dict[str, Any]:
    """Return the members of a result that belong to `meta`, if they are not None or False.

    A page of a list always says whether there are more pages. If there are, or if a value was
    shortened, the response is `truncated`.
    """
    meta: dict[str, Any] = {}
    is_list = hasattr(result, "next_cursor")
    if is_list:
        has_more = getattr(result, "next_cursor", None) is not None
        meta["has_more"] = has_more
        if has_more:
            meta["truncated"] = True
    for name in META_MEMBERS:
        member = getattr(result, name, None)
        if member is not None and member is not False:
            meta[name] = member
    return meta


def value_text(value: Any) -> str:
    """Return a value for a person: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


def _members_to_data(record: type, members: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a record as data, without those that do not apply."""
    data = {}
    for name, member in members.items():
        if member is None and name in optional_members(record):
            continue
        data[name] = to_data(member)
    return data


def _compact_json(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False, default=str)


def _may_have_surrogates(line: str) -> bool:
    """Return whether a line of JSON may have lone surrogates. Most lines need no closer look."""
    # In ASCII, JSON writes surrogates as escapes from \ud800 to \udfff. Other characters may match
    # too: those from \ud700 to \ud7ff, and an emoji, which is written as a pair of surrogates.
    return "\\ud" in line


def _escape_surrogates(text: str) -> str:
    """Return the text with an escape, such as `\\xe9`, in place of each lone surrogate."""
    characters = []
    for character in text:
        if 0xD800 <= ord(character) <= 0xDFFF:
            characters.append(escaped(character))
        else:
            characters.append(character)
    return "".join(characters)


def _text_lines(response: Response, screen: Screen) -> list[str]:
    """Return the lines that show the result to a person."""
    lines: list[str] = []
    if response.result is not None:
        lines = laid_out(response.result.lines(), screen.width, colour=screen.color)
    if lines and response.meta.get("dry_run"):
        lines.insert(0, "Dry run, nothing was changed. The result would be:")
    cursor = response.meta.get("next_cursor")
    if cursor is not None:
        lines.append(f"There is more. To continue, pass --after {shlex.quote(printable(cursor))}")
    return lines


def _warning_text(response: Response, screen: Screen) -> str:
    """Return the lines that show the warnings to a person."""
    lines = []
    for warning in response.warnings:
        lines.append(_titled("Warning:", YELLOW, warning["message"], screen))
    return "".join(f"{line}\n" for line in lines)


def _error_text(response: Response, screen: Screen) -> str:
    """Return the lines that show the error and its hint. The text is empty after a success."""
    error = response.error
    if error is None:
        return ""
    lines = [_titled("Error:", RED, f"{error.message} [{error.code}]", screen)]
    for problem in error.context.get("problems", ()):
        lines.append(_paragraph(problem, screen))
    lines.append(_paragraph(error.suggestion, screen))
    return "".join(f"{line}\n" for line in lines)


def _titled(title: str, color: str, text: str, screen: Screen) -> str:
    """Return a paragraph that begins with a title, which is in color if stderr has colors.

    The title has no spaces, so that it is never broken into lines.
    """
    paragraph = _paragraph(f"{title} {text}", screen)
    if not screen.stderr_color:
        return paragraph
    # Lines are broken first, because the codes of the color take up no room on the terminal.
    after_title = paragraph.removeprefix(title)
    return f"{color}{title}{PLAIN}{after_title}"


def _paragraph(text: str, screen: Screen) -> str:
    """Return the text without control characters, in lines that fit the terminal."""
    shown = printable(text)
    if screen.width is None:
        return shown
    return "\n".join(between_words(shown, screen.width))
