"""How a response shows the value of a setting: without secrets, and a long one only in part."""

from math import isfinite
from typing import Annotated, Any, NamedTuple

import typer

from ...contract.response import value_text
from ...contract.text import MASK, is_secret, redact
from ...settings.precedence import Key
from ...settings.toml_key import TomlValue, show_key

MAX_LISTED_CHARACTERS = 200
"""The length of a value in a list. A command that is asked for one value shows all of it."""

RevealOption = Annotated[
    bool,
    typer.Option("--reveal", help="Show passwords and other secrets instead of masking them."),
]


class Excerpt(NamedTuple):
    """A value, or the start of a long one."""

    value: Any
    length: int | None
    """The number of characters of the whole value. It is None if `value` is the whole value."""


def value_to_show(key: Key, value: TomlValue, *, reveal: bool) -> Any:
    """Return the value for a response.

    Unless `reveal` is set, replace secrets. A value that JSON does not know, such as a date, is
    returned as a text.
    """
    if isinstance(value, dict):
        shown = {}
        for name, member in value.items():
            shown[name] = value_to_show((*key, name), member, reveal=reveal)
        return shown
    if not reveal and is_secret(show_key(key)):
        return MASK
    if isinstance(value, list):
        return [value_to_show(key, member, reveal=reveal) for member in value]
    if isinstance(value, str) and not reveal:
        return redact(value)
    if _is_known_to_json(value):
        return value
    # A date, a time, `nan` or `inf`, as TOML writes it.
    return str(value).replace(" ", "T")


def _is_known_to_json(value: TomlValue) -> bool:
    """Return whether JSON can represent a value that is neither a list nor a table."""
    if isinstance(value, float):
        return isfinite(value)
    return isinstance(value, (str, int))


def excerpt(value: Any) -> Excerpt:
    """Return the value. Of a long one, return the start of its text."""
    text = value_text(value)
    if len(text) <= MAX_LISTED_CHARACTERS:
        return Excerpt(value=value, length=None)
    return Excerpt(value=text[:MAX_LISTED_CHARACTERS], length=len(text))
