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

_EXACT_INTEGER = 2**53 - 1
"""The largest integer that every JSON reader keeps exactly. Larger ones are kept as text."""
_DEEPEST = 100
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
    """Return a text, an integer or a boolean as TOML. JSON writes them in the same way."""
    # TOML forbids the character DEL in a text, but JSON does not.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def show_value(value: TomlValue) -> str:
    """Return the value as TOML on one line."""
    if isinstance(value, dict):
        pairs = [f"{show_key((key,))} = {show_value(member)}" for key, member in value.items()]
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(show_value(member) for member in value) + "]"
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
    # More dots than that can only be in quotes, where nobody needs them.
    if text.count(".") >= MAX_KEY_PARTS:
        parts = text.count(".") + 1
        raise ValueError(f"a key has at most {MAX_KEY_PARTS} parts, not {parts}")
    try:
        return _read_key(text)
    except ValueError:
        from ..contract.mistyped import check_name  # 1 ms, and it is needed only for a wrong key

        check_name(text)
        form = "dotted names such as build.jobs, with quotes around odd ones"
        raise ValueError(f"{quoted(text)} is not a key: {form}") from None


def _read_key(text: str) -> KeyPath:
    """Return the parts of a dotted key. Raise ValueError if it is not one."""
    if text in NOTHING or not text.isprintable() or "=" in text:
        raise ValueError(f"{text} is not a key")
    names = text.split(".")
    if all(_is_bare(name) for name in names):
        return tuple(names)
    value: TomlValue = tomllib.loads(f"{text} = 0")
    path: list[str] = []
    while isinstance(value, dict):
        # `[a]` and `# a` are TOML, but not a key.
        if len(value) != 1:
            raise ValueError(f"{text} is not a key")
        ((part, value),) = value.items()
        path.append(part)
    return tuple(path)


def parse_value(text: str) -> TomlValue:
    """Return the value if the text is TOML that would be printed as it was typed; else the text.

    So `5` is a number. But `1.10`, `0x10` and a date are texts, because JSON would print them in
    another way.
    """
    try:
        check_limits(text)
        document = tomllib.loads(f"value = {text}", parse_float=_exact_float)
        # This fails if a comment follows the value.
        tomllib.loads(f"value = [{text}]")
    except (ValueError, RecursionError):
        return text
    if document.keys() != {"value"} or "\n" in text:
        return text
    value = document["value"]
    if type(value) is int and str(value) != text:
        return text
    if not _fits_json(value):
        return text
    return value


def _exact_float(text: str) -> float:
    """Return the number. Raise ValueError if it would be printed in another way."""
    value = float(text)
    if repr(value) != text or not isfinite(value):
        raise ValueError(f"{text} would not be printed as it was typed")
    return value


def _fits_json(value: TomlValue, depth: int = _DEEPEST) -> bool:
    """Return whether JSON can represent the value exactly, with at most `depth` levels."""
    if isinstance(value, dict):
        return depth > 0 and all(_fits_json(member, depth - 1) for member in value.values())
    if isinstance(value, list):
        return depth > 0 and all(_fits_json(member, depth - 1) for member in value)
    if isinstance(value, int):
        return abs(value) <= _EXACT_INTEGER
    return isinstance(value, (str, float))


def value_at(document: TomlValue, path: KeyPath) -> TomlValue:
    """Return the value at this path, or None, which is no value in TOML, if there is none."""
    for part in path:
        if not isinstance(document, dict) or part not in document:
            return None
        document = document[part]
    return document
