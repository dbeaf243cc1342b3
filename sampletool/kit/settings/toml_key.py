"""Keys and values of TOML, as people type them on a command line."""

import json
import tomllib
from math import isfinite
from typing import Any

from ..contract.text import NOTHING, quoted
from ..safety.toml_limits import MAX_KEY_PARTS, check_limits

KeyPath = tuple[str, ...]
"""The parts of a dotted key."""
TomlValue = Any
"""A value that tomllib reads: str, int, float, bool, a date or time, a list, or a table."""
TomlTable = dict[str, TomlValue]
"""A table, or a whole document."""

_LARGEST_EXACT_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly. Larger ones are kept as text."""
MAX_SHOWN_KEY_CHARACTERS = 1000
"""The length of a key in a response. No real key is longer."""
_MAX_DEPTH = 100
"""The number of tables and lists that may be in each other, far below the limit of recursion."""


def show_key(path: KeyPath) -> str:
    """Return the key in one text: the parts with dots between them, in quotes where needed."""
    parts = []
    for part in path:
        if _is_bare(part):
            parts.append(part)
        else:
            parts.append(show_plain(part))
    return ".".join(parts)


def _is_bare(part: str) -> bool:
    """Return whether the part of a key needs no quotes."""
    return part.isascii() and part.replace("-", "0").replace("_", "0").isalnum()


def show_plain(value: str | int) -> str:
    """Return a text (in quotes), an integer or a boolean as TOML. JSON writes them alike."""
    # TOML forbids the character DEL in a text, but JSON does not.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def show_value(value: TomlValue) -> str:
    """Return the value as TOML on one line."""
    if isinstance(value, dict):
        pairs = [f"{show_key((key,))} = {show_value(member)}" for key, member in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(show_value(member) for member in value) + "]"
    # A bool is an int.
    if isinstance(value, (str, int)):
        return show_plain(value)
    if isinstance(value, float):
        # Python and TOML write a float in the same way, also 1e+16, inf and nan.
        return repr(value)
    # The rest is a date or a time.
    shown: str = value.isoformat()
    return shown


def parse_key(text: str) -> KeyPath:
    """Return the parts of a dotted key, which is written as in TOML.

    Raise ValueError, whose text is a message for the user.
    """
    # A dot in quotes does not separate parts, but here it counts too. No key needs that many.
    if text.count(".") >= MAX_KEY_PARTS:
        parts = text.count(".") + 1
        raise ValueError(f"A key can have at most {MAX_KEY_PARTS} parts, but this one has {parts}")
    try:
        return _read_key(text)
    except ValueError:
        from ..contract.mistyped import check_name  # 1 ms, and it is needed only for a wrong key

        # This raises a better message for some mistakes, such as an unset variable.
        check_name(text)
        rule = "Use names separated by dots, such as build.jobs, and quote special characters"
        raise ValueError(f"{quoted(text)} is not a valid key. {rule}") from None


def _read_key(text: str) -> KeyPath:
    """Return the parts of a dotted key. Raise ValueError if the text is not one."""
    # NOTHING has the words, such as "null", that programs write for a variable without a value.
    if text in NOTHING or not text.isprintable() or "=" in text:
        raise ValueError(f"{text} is not a key")
    parts = text.split(".")
    if all(_is_bare(part) for part in parts):
        return tuple(parts)

    # Some parts are in quotes. tomllib reads `a."b.c" = 0` as {"a": {"b.c": 0}}. So the parts are
    # the names of the tables, and of the 0 in the innermost one.
    quoted_parts: list[str] = []
    table_or_zero: TomlValue = tomllib.loads(f"{text} = 0")
    while isinstance(table_or_zero, dict):
        # If the text begins with a comment or a header, ` = 0` is in a comment, and this is {}.
        if len(table_or_zero) != 1:
            raise ValueError(f"{text} is not a key")
        part = next(iter(table_or_zero))
        quoted_parts.append(part)
        table_or_zero = table_or_zero[part]
    return tuple(quoted_parts)


def parse_value(text: str) -> TomlValue:
    """Return the value if the text is TOML that would be printed as it was typed; else the text.

    So `5` is a number. But `1.10`, `0x10` and a date are texts, because JSON would print them in
    another way.
    """
    try:
        value = _read_value(text)
    except (ValueError, RecursionError):
        return text
    if not _fits_json(value):
        return text
    return value


def _read_value(text: str) -> TomlValue:
    """Return the value of a TOML text. Raise ValueError if it would be printed in another way.

    Raise ValueError or RecursionError if the text is not exactly one value on one line.
    """
    check_limits(text)
    # With a second line, `5` could be followed by another key.
    if "\n" in text:
        raise ValueError("a value has one line")
    # In brackets, a value with a comment, such as `5 # five`, is not TOML: the closing bracket
    # would be in the comment.
    tomllib.loads(f"value = [{text}]")
    value = tomllib.loads(f"value = {text}", parse_float=_exact_float)["value"]
    # For example, `0x10`, `+5` and `1_000` are integers in TOML. A bool is not meant here, although
    # it is an int.
    if type(value) is int and str(value) != text:
        raise ValueError(f"{text} would not be printed as it was typed")
    return value


def _exact_float(text: str) -> float:
    """Return the number. Raise ValueError if it would be printed in another way."""
    value = float(text)
    if repr(value) != text or not isfinite(value):
        raise ValueError(f"{text} would not be printed as it was typed")
    return value


def _fits_json(value: TomlValue, depth: int = _MAX_DEPTH) -> bool:
    """Return whether JSON can represent the value exactly, with at most `depth` levels."""
    if isinstance(value, dict):
        return depth > 0 and all(_fits_json(member, depth - 1) for member in value.values())
    if isinstance(value, list):
        return depth > 0 and all(_fits_json(member, depth - 1) for member in value)
    if isinstance(value, int):
        return abs(value) <= _LARGEST_EXACT_INTEGER
    # A float fits, because _exact_float() has refused nan and inf. A date does not.
    return isinstance(value, (str, float))


def value_at(document: TomlValue, path: KeyPath) -> TomlValue:
    """Return the value at this path, or None, which is no value in TOML, if there is none."""
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return None
        document = document[part]
    return document
