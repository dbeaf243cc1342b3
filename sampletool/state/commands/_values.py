"""Values of the store, as they are typed."""

import json
from pathlib import Path
from typing import Any

from ...kit.context import Context
from ...kit.contract.errors import InvalidValues, Mistake
from ...kit.contract.mistyped import begins_as_json
from ...kit.contract.text import quoted
from ...kit.safety.atomic_file import read_regular
from ...kit.safety.signals import Signals
from ...kit.stdin import read_stdin

_STDIN_LIMIT_BYTES = 16 * 1024 * 1024
_DEEPEST = 100
_AS_TEXT = "Correct it; a text that begins like this is written as a JSON string."


def parse_value(text: str, context: Context) -> Any:
    """JSON where it parses and would print back as typed; else the text, with a warning if it looks like JSON."""
    try:
        value = parse_json(text)
    except ValueError as error:
        if begins_as_json(text):
            problem = f"{quoted(text)} begins as JSON and cannot be read: {error}"
            raise InvalidValues(Mistake("VALUE", "INVALID_VALUE", problem, text[:80], _AS_TEXT)) from error
        if text.lstrip().startswith(("{", "[")):
            context.warn("NOT_JSON", f"{quoted(text[:80])} is taken as text, for it is not JSON: {error}.")
        return text
    prints_otherwise = isinstance(value, (int, float)) and json.dumps(value) != text
    return text if prints_otherwise else value


def parse_json(text: str) -> Any:
    """Only what any reader of JSON takes: no NaN, nothing infinite, no member twice, not too deep; else ValueError."""
    try:
        value = json.loads(text, object_pairs_hook=_members)
        json.dumps(value, allow_nan=False)
        is_deep = _is_deeper(value, _DEEPEST)
    except RecursionError:
        is_deep = True
    if is_deep:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member is given twice")
    return members


def _is_deeper(value: Any, depth: int) -> bool:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return depth == 0 or any(_is_deeper(member, depth - 1) for member in members)


def read_input(name: str, signals: Signals, *, allow_empty: bool = True) -> str:
    """All of stdin (`-`) or of a file, as text, up to a limit."""
    if name == "-":
        return read_stdin(signals, _STDIN_LIMIT_BYTES, allow_empty=allow_empty)
    try:
        return read_regular(Path(name).absolute(), _STDIN_LIMIT_BYTES).decode()
    except UnicodeDecodeError:
        raise InvalidValues(Mistake("VALUE", "INVALID_VALUE", f"{name} is not UTF-8 text", name)) from None
