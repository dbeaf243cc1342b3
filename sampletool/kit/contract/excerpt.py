"""The start of a long value, for lists. A command that shows one value shows all of it."""

from typing import Any, NamedTuple

from .response import value_text

MAX_LISTED_CHARACTERS = 200
"""The length of a value in a list."""


class Excerpt(NamedTuple):
    """A value, or the start of a long one."""

    value: Any
    length: int | None
    """The number of characters of the whole value. It is None if `value` is the whole value."""


def excerpt(value: Any) -> Excerpt:
    """Return the value. Of a long one, return the start of its text."""
    text = value_text(value)
    if len(text) <= MAX_LISTED_CHARACTERS:
        return Excerpt(value=value, length=None)
    return Excerpt(value=text[:MAX_LISTED_CHARACTERS], length=len(text))


def excerpt_text(value: Any, length: int | None) -> str:
    """Return the text that shows an excerpt to a person."""
    text = value_text(value)
    if length is None:
        return text
    return f"{text}… ({length} characters)"
