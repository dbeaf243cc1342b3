"""An answer as bytes: one line of JSON, or text for a person. Nothing an answer carries can break its form.

JSON is ASCII and one line; text shows control characters escaped, so that a file name or another caller's value
cannot move the cursor or forge a line.
"""

import json
import unicodedata
from typing import Any, Literal

from sampletool.contract.answer import Answer, to_data

Format = Literal["json", "jsonl", "text"]
FORMATS: tuple[Format, ...] = ("json", "jsonl", "text")

_RED, _YELLOW, _PLAIN = "\x1b[31m", "\x1b[33m", "\x1b[0m"


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


def printable(text: str) -> str:
    """Control, bidirectional and invisible characters as escapes; everything else as it is."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_harmless(char) else _escape(char) for char in text)


def _text(answer: Answer, colour: bool) -> str:
    def paint(text: str, code: str) -> str:
        return f"{code}{text}{_PLAIN}" if colour else text

    lines = [printable(line) for line in answer.result.lines()] if answer.result is not None else []
    if colour and (paint_lines := getattr(answer.result, "painted_lines", None)):
        lines = paint_lines()
    for warning in answer.warnings:
        lines.append(f"{paint('Warning:', _YELLOW)} {printable(warning.message)}")
    if answer.error is not None:
        lines.append(f"{paint('Error:', _RED)} {printable(answer.error.message)} [{answer.error.code}]")
        lines.append(printable(answer.error.suggestion))
    return "".join(f"{line}\n" for line in lines)


def _is_harmless(char: str) -> bool:
    return char.isprintable() and unicodedata.category(char) not in ("Cf", "Cs", "Co", "Zl", "Zp")


def _escape(char: str) -> str:
    number = ord(char)
    if 0xDC80 <= number <= 0xDCFF:
        return f"\\x{number - 0xDC00:02x}"
    if number < 0x100:
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}.get(char, f"\\x{number:02x}")
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return "".join(_escape(char) if 0xD800 <= ord(char) <= 0xDFFF else char for char in value)
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_without_surrogates(member) for member in value]
    return value
