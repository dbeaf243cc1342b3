"""How a response shows keys and values: without secrets, and the start of a long key."""

import zlib
from math import isfinite
from typing import Annotated, Any

import typer

from ...contract.excerpt import MAX_LISTED_CHARACTERS
from ...contract.text import MASK, is_secret, redact
from ...settings.precedence import Key
from ...settings.toml_key import MAX_SHOWN_KEY_CHARACTERS, TomlValue, show_key

RevealOption = Annotated[
    bool,
    typer.Option("--reveal", help="Show passwords and other secrets instead of masking them."),
]


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


def key_to_show(key: Key) -> str:
    """Return the dotted key. One that is longer than any real key is shortened.

    It stays different from all other keys, because the position of a page is a key.
    """
    text = show_key(key)
    if len(text) <= MAX_SHOWN_KEY_CHARACTERS:
        return text
    checksum = zlib.crc32(text.encode())
    return f"{text[:MAX_LISTED_CHARACTERS]}…{checksum:08x}"
