"""An answer as bytes: one line of JSON, or text for a person. Nothing an answer carries can break its form.

JSON is ASCII and one line; text shows control characters escaped, so that a file name or another caller's value
cannot move the cursor or forge a line.
"""

import json
import shlex
from typing import Any, Literal

from .answer import Answer, to_data
from .text import PLAIN, RED, YELLOW, escaped, printable

Format = Literal["json", "jsonl", "text"]
FORMATS: tuple[Format, ...] = ("json", "jsonl", "text")


def render(answer: Answer, form: Format, *, colour: bool = False) -> bytes:
    if form == "text":
        return _text(answer, colour).encode("utf-8", "backslashreplace")
    return json_line(answer.envelope())


def json_line(value: Any) -> bytes:
    """One compact line. Bytes of file names that are not UTF-8 are shown as `\\xNN`, lone surrogates as `\\uNNNN`."""
    line = json.dumps(to_data(value), separators=(",", ":"), allow_nan=False, default=str)
    if "\\ud" in line:
        line = json.dumps(_without_surrogates(to_data(value)), separators=(",", ":"), allow_nan=False, default=str)
    return line.encode("ascii") + b"\n"


def value_text(value: Any) -> str:
    """One value for a person: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _text(answer: Answer, colour: bool) -> str:
    def paint(text: str, code: str) -> str:
        return f"{code}{text}{PLAIN}" if colour else text

    lines = [printable(line) for line in answer.result.lines()] if answer.result is not None else []
    if colour and (paint_lines := getattr(answer.result, "painted_lines", None)):
        lines = paint_lines()
    if lines and answer.meta.get("dry_run"):
        lines.insert(0, "A forecast; nothing was changed:")
    if cursor := answer.meta.get("next_cursor"):
        lines.append(f"More follow: --cursor {shlex.quote(printable(cursor))}")
    for warning in answer.warnings:
        lines.append(f"{paint('Warning:', YELLOW)} {printable(warning.message)}")
    if answer.error is not None:
        lines.append(f"{paint('Error:', RED)} {printable(answer.error.message)} [{answer.error.code}]")
        lines.append(printable(answer.error.suggestion))
    return "".join(f"{line}\n" for line in lines)


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return "".join(escaped(char) if 0xD800 <= ord(char) <= 0xDFFF else char for char in value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(member) for member in value]
    return value
