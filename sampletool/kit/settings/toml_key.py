"""Keys and values of TOML, read and written as people type them."""

import json
import tomllib
from math import isfinite
from typing import Any

from ..contract.text import NOTHING, quoted

Path = tuple[str, ...]
"""The parts of a dotted key."""
TomlValue = Any
TomlTable = dict[str, Any]

_EXACT_INTEGER = 2**53 - 1
"""Beyond it JSON readers round, so a larger number stays text."""
_DEEPEST = 100
"""Tables and lists within each other, at the most: far below what recursion can do."""


def show_key(path: Path) -> str:
    """The parts with dots between them, quoted where they have to be."""
    return ".".join(part if _is_bare(part) else show_plain(part) for part in path)


def _is_bare(part: str) -> bool:
    return part.isascii() and part.replace("-", "0").replace("_", "0").isalnum()


def show_plain(value: str | int) -> str:
    """A text, a whole number or a boolean: TOML and JSON write them alike."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def parse_key(text: str) -> Path:
    """A dotted key as in TOML, with quotes where a part needs them; ValueError with a sentence."""
    if text.count(".") >= _DEEPEST:
        raise ValueError(f"a key has at most {_DEEPEST} parts, not {text.count('.') + 1}")
    try:
        if text in NOTHING or not text.isprintable() or "=" in text:
            raise ValueError
        if all(map(_is_bare, text.split("."))):
            return tuple(text.split("."))
        found: Any = tomllib.loads(f"{text} = 0")
    except ValueError:
        from ..contract.mistyped import check_name

        check_name(text)
        form = "dotted names such as build.jobs, with quotes around odd ones"
        raise ValueError(f"{quoted(text)} is not a key: {form}") from None
    path: list[str] = []
    while found != 0:
        ((part, found),) = found.items()
        path.append(part)
    return tuple(path)


def parse_value(text: str) -> Any:
    """The TOML value that prints back as typed and that JSON can carry; else the text itself."""
    try:
        read = tomllib.loads(f"value = {text}", parse_float=_exact_float)
        tomllib.loads(f"value = [{text}]")  # fails where a comment follows the value
    except (ValueError, RecursionError):
        return text
    if read.keys() != {"value"} or "\n" in text:
        return text
    value = read["value"]
    prints_otherwise = type(value) is int and str(value) != text
    return text if prints_otherwise or not _is_carried(value) else value


def _exact_float(text: str) -> float:
    value = float(text)
    if repr(value) != text or not isfinite(value):
        raise ValueError(f"{text} would not print back as typed")
    return value


def _is_carried(value: Any, depth: int = _DEEPEST) -> bool:
    if isinstance(value, (dict, list)):
        members = value.values() if isinstance(value, dict) else value
        return depth > 0 and all(_is_carried(member, depth - 1) for member in members)
    if isinstance(value, int):
        return abs(value) <= _EXACT_INTEGER
    return isinstance(value, (str, float))


def get(document: Any, path: Path) -> Any:
    """The value at this path, whose other parts are tables; None, which no value in TOML is, if there is none."""
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return None
        document = document[part]
    return document
