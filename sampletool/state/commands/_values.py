"""Values of the store, as people type them."""

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
from ._almost_json import correct_json

_MAX_INPUT_BYTES = 16 * 1024 * 1024
"""The size of stdin or a file. It is more than a value may have, because escapes take space."""

_MAX_DEPTH = 100
"""How deep arrays and objects may be nested. Deeper ones could end a reader by its recursion."""

_MAX_SHOWN_CHARACTERS = 80

_HINT = "Correct it. To store a text that looks like JSON, write it as a JSON string."


def parse_value(text: str, context: Context) -> Any:
    """Return the value that the text means: JSON if it is JSON, and the text itself otherwise.

    A number that JSON would print differently, such as 1.10, stays text. Warn if the text looks
    like an object or an array, but is not JSON. Raise InvalidValues if it certainly was meant as
    JSON.
    """
    try:
        value = parse_json(text)
    except ValueError as error:
        if begins_as_json(text):
            problem = f"{quoted(text)} looks like JSON, but is not valid: {error}"
            mistake = Mistake(
                param="VALUE",
                code="INVALID_VALUE",
                message=problem,
                value=text[:_MAX_SHOWN_CHARACTERS],
                suggestion=_HINT,
                corrected_input=_find_correction(text),
            )
            raise InvalidValues(mistake) from error
        if text.lstrip().startswith(("{", "[")):
            start_of_text = quoted(text[:_MAX_SHOWN_CHARACTERS])
            context.warn(
                "NOT_JSON", f"{start_of_text} is stored as text, because it is not JSON: {error}."
            )
        return text
    is_number = isinstance(value, (int, float))
    if is_number and json.dumps(value) != text:
        return text
    return value


def _find_correction(text: str) -> str | None:
    """Return the JSON that was probably meant, or None if that is not clear."""
    corrected = correct_json(text)
    if corrected is None:
        return None
    try:
        # A text can have a second problem, such as NaN. A program that sends such a correction back
        # would be refused again and again.
        parse_json(corrected)
    except ValueError:
        return None
    return corrected


def parse_json(text: str) -> Any:
    """Return the value of a JSON text. Raise ValueError if some readers of JSON would refuse it.

    Refused are NaN, infinite numbers, an object with the same member twice, and deep nesting.
    """
    try:
        value = json.loads(text, object_pairs_hook=_unique_members)
        # Only to raise ValueError for NaN and infinite numbers.
        json.dumps(value, allow_nan=False)
        is_too_deep = _is_deeper_than(value, _MAX_DEPTH)
    except RecursionError:
        # It is even deeper than the parser of Python can read.
        is_too_deep = True
    if is_too_deep:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} deep")
    return value


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member appears twice")
    return members


def _is_deeper_than(value: Any, depth: int) -> bool:
    if depth == 0:
        return True
    members: Any = ()
    if isinstance(value, dict):
        members = value.values()
    elif isinstance(value, list):
        members = value
    return any(_is_deeper_than(member, depth - 1) for member in members)


def read_input(name: str, signals: Signals, *, allow_empty: bool = True) -> str:
    """Return the text of a file, or of stdin if the name is `-`."""
    if name == "-":
        return read_stdin(signals, _MAX_INPUT_BYTES, allow_empty=allow_empty)
    content = read_regular(Path(name).absolute(), _MAX_INPUT_BYTES)
    try:
        return content.decode()
    except UnicodeDecodeError:
        problem = f"{name} is not UTF-8 text"
        raise InvalidValues(Mistake("VALUE", "INVALID_VALUE", problem, name)) from None
