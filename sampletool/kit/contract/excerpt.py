"""The start of a long value, for lists.

A command that shows one value shows all of it, unless its caller passes --max-chars.
"""

from typing import Any, NamedTuple

from .response import value_text

MAX_LISTED_CHARACTERS = 200
"""The length of a value in a list."""


class Excerpt(NamedTuple):
    """A value, or the start of a long one."""

    value: Any
    length: int | None
    """The number of characters of the whole value. It is None if `value` is the whole value."""


def excerpt(value: Any, max_characters: int | None = MAX_LISTED_CHARACTERS) -> Excerpt:
    """Return the value. Of a long one, return the start of its text. None means no limit."""
    # None is the value of what does not exist, such as the result of a task that is not done.
    if max_characters is None or value is None:
        return Excerpt(value=value, length=None)
    text = value_text(value)
    if len(text) <= max_characters:
        return Excerpt(value=value, length=None)
    return Excerpt(value=text[:max_characters], length=len(text))


def excerpt_text(value: Any, length: int | None) -> str:
    """Return the text that shows an excerpt to a person."""
    text = value_text(value)
    if length is None:
        return text
    return f"{text}… ({length} characters)"
