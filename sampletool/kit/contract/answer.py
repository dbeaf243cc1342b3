"""One answer per call: an envelope with the same members whatever the command, written as one line of JSON or as text.

`error` is absent on success, so that `answer.get("error", {}).get("code")` works on every answer. Nothing can break the
form: JSON is ASCII and one line; in text control characters are escaped, so that a file name or another caller's value
cannot move the cursor or forge a line.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, get_args

from .errors import ToolError
from .text import PLAIN, RED, YELLOW, between_words, escaped, printable, printable_data

if TYPE_CHECKING:
    from .size import Tree
    from .table import Line

SCHEMA_VERSION = "1.0"

Effect = Literal["created", "updated", "deleted", "unchanged"]
"""What a call did to what it changes."""
UNTRUSTED = {"x-untrusted": True}
"""`Annotated[str, UNTRUSTED]`: written by others, such as the output of a child; to be read, never obeyed."""


class Result(Protocol):
    """What a command returns: a NamedTuple that can say itself in lines of text, and in rows of tables.

    All that answers carry are named tuples: as unchangeable as frozen dataclasses, and made in an eighth of the time,
    which every start of a command pays.
    """

    def lines(self) -> "Sequence[Line]": ...


class Answer(NamedTuple):
    result: Result | None
    error: ToolError | None
    warnings: list[dict[str, str]]
    """Each with `code` and `message`."""
    meta: dict[str, Any]

    def envelope(self, fields: "Tree | None" = None) -> dict[str, Any]:
        data = to_data(self.result)
        if fields is not None:
            from .size import picked

            data = picked(data, fields)
        failure = {"error": self.error.describe()} if self.error else {}
        return {"ok": self.error is None, **failure, "data": data, "warnings": self.warnings, "meta": self.meta}


def to_data(value: Any) -> Any:
    """Named tuples as objects; a member that is None does not apply, and is absent."""
    if hasattr(value, "_asdict") or hasattr(value, "__dataclass_fields__"):
        members = value._asdict() if hasattr(value, "_asdict") else vars(value)
        return {name: to_data(member) for name, member in members.items() if member is not None}
    if isinstance(value, dict):
        return {str(key): to_data(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(member) for member in value]
    return value


FormatName = Literal["json", "jsonl", "text"]
Format = FormatName | Literal["raw"]
"""`raw` is what --raw asks for."""
FORMATS: tuple[Format, ...] = get_args(FormatName)


class Screen(NamedTuple):
    """Where text goes: how wide a terminal is, None where there is none; and which of stdout and stderr has colour."""

    width: int | None = None
    colour: bool = False
    stderr_colour: bool = False


class Size:
    """How much of an answer is wanted: which fields of the data, and whether it may be longer than 64 KiB."""

    fields: Any = None
    is_full = False
    cursor_after: Any = None
    """Of a page: where the next one begins behind so many of its items."""


PIPE, _SMALL = Screen(), Size()
LARGEST_BYTES = 64 * 1024


def render(answer: Answer, form: Format, screen: Screen = PIPE, size: Size = _SMALL) -> tuple[bytes, str]:
    """What goes to stdout; and in text, where errors and warnings must not get into `$(...)`, what goes to stderr."""
    if form not in ("text", "raw"):
        line = json_line(answer.envelope(size.fields))
        if len(line) > LARGEST_BYTES and not size.is_full:
            from .size import shortened

            line = json_line(shortened(json.loads(line), size.cursor_after))
        return line, ""
    if form == "text" or answer.result is None:
        text = "".join(f"{line}\n" for line in _lines(answer, screen))
    else:
        text = f"{value_text(getattr(answer.result, 'value', None))}\n"
    return text.encode("utf-8", "backslashreplace"), _notices(answer, screen)


def json_line(value: Any) -> bytes:
    """One compact line. Bytes of file names that are not UTF-8 are shown as `\\xNN`, lone surrogates as `\\uNNNN`."""
    line = _compact(data := to_data(value))
    if "\\ud" in line:
        line = _compact(printable_data(data, _without_surrogates))
    return line.encode("ascii") + b"\n"


def _compact(data: Any) -> str:
    return json.dumps(data, separators=(",", ":"), allow_nan=False, default=str)


def value_text(value: Any) -> str:
    """One value for a person: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _lines(answer: Answer, screen: Screen) -> list[str]:
    from .table import laid_out

    lines = laid_out(answer.result.lines(), screen.width, colour=screen.colour) if answer.result is not None else []
    if lines and answer.meta.get("dry_run"):
        lines.insert(0, "A forecast; nothing was changed:")
    if cursor := answer.meta.get("next_cursor"):
        import shlex

        lines.append(f"More follow: --after {shlex.quote(printable(cursor))}")
    return lines


def _notices(answer: Answer, screen: Screen) -> str:
    lines = [("Warning:", YELLOW, warning["message"]) for warning in answer.warnings]
    if (error := answer.error) is not None:
        lines.append(("Error:", RED, f"{error.message} [{error.code}]"))
        lines += [("", "", text) for text in (*error.context.get("problems", ()), error.suggestion)]
    said = ""
    for title, code, text in lines:
        line = f"{title} {printable(text)}".strip()
        line = "\n".join(between_words(line, screen.width)) if screen.width else line
        said += f"{code}{title}{PLAIN}{line[len(title) :]}\n" if code and screen.stderr_colour else f"{line}\n"
    return said


def _without_surrogates(text: str) -> str:
    return "".join(escaped(char) if 0xD800 <= ord(char) <= 0xDFFF else char for char in text)
