"""Limits of a TOML text, checked before a parser sees it.

A parser reads a hostile file for as long as the file wants, and no signal stops it: signal handlers
only take a note. tomllib needs time that is quadratic in the parts of a key. A key of 12,000 parts,
which is a line of 24 KB, takes it 0.9 s. A key of 60,000 parts takes it 39 s. So a text has to be
short, and so has each of its keys.

Within these limits, the slowest text of 256 KiB that we found (a table with a key of 100 parts, and
keys of 100 parts in it) takes tomllib 0.9 s. A file of 256 KiB with a short key in each line takes
0.1 s.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

MAX_TOML_BYTES = 256 * 1024
"""The size of the largest file that is read or written."""
TOO_LARGE = f"larger than {MAX_TOML_BYTES // 1024} KiB"
"""The words for a file beyond that size, the same ones in each error."""
MAX_KEY_PARTS = 100
"""The number of parts of the longest key: `a.b.c` has three."""

# A string or a comment. An unfinished one extends to the end of its line or of the text. It makes
# the text invalid, so the text behind it does not matter. But if unfinished ones did not match,
# each quote would make the search run to the end of the text. The time would be quadratic in the
# number of quotes.
_STRING_OR_COMMENT = re.compile(
    r"""
      "{3} (?: \\. | [^\\] )*? (?: "{3,5} | \Z )
    | '{3} .*? (?: '{3,5} | \Z )
    | " (?: \\[^\n] | [^"\\\n] )* "?
    | ' [^'\n]* '?
    | \# [^\n]*
    """,
    re.VERBOSE | re.DOTALL,
)
_END_OF_KEY = re.compile(r"([=,\[\]{}\n])")


class TextBeforeDelimiter(NamedTuple):
    """A piece of a TOML text in which each character of a string or a comment is an `x`.

    If the delimiter is `=`, the text is a key. Otherwise it is a header, a value, or empty.
    """

    text: str
    delimiter: str

    @property
    def dots(self) -> int:
        """The number of dots: one less than the number of parts, if the text is a key."""
        return self.text.count(".")


def check_limits(text: str) -> None:
    """Raise ValueError if the text is too long, or if one of its keys has too many parts."""
    # A character has at least one byte. So this refuses no text that would fit into a file.
    if len(text) > MAX_TOML_BYTES:
        raise ValueError(f"it is {TOO_LARGE}")
    # Most files do not have so many dots, and need no closer look.
    if text.count(".") < MAX_KEY_PARTS:
        return
    position = 0
    for piece in split_at_delimiters(text):
        parts = piece.dots + 1
        if parts > MAX_KEY_PARTS:
            line = text.count("\n", 0, position) + 1
            raise ValueError(f"the key in line {line} has {parts} parts (at most {MAX_KEY_PARTS})")
        position += len(piece.text) + len(piece.delimiter)


def split_at_delimiters(text: str) -> Iterator[TextBeforeDelimiter]:
    """Yield the pieces of a TOML text, with an `x` for each character of a string or a comment.

    So together, the pieces and delimiters are as long as the text.

    A key is never split: it is on one line, and outside of a string it contains only dots, blanks,
    letters, digits, dashes and underscores. So a piece has at least as many dots as the key in it.
    And it has few dots if it is no key, because a number or a date has at most one.
    """
    without_strings = _STRING_OR_COMMENT.sub(lambda found: "x" * len(found.group()), text)
    pieces = _END_OF_KEY.split(without_strings)
    # With a group in the pattern, split() returns texts and delimiters in turn.
    for index in range(0, len(pieces) - 1, 2):
        yield TextBeforeDelimiter(text=pieces[index], delimiter=pieces[index + 1])
    yield TextBeforeDelimiter(text=pieces[-1], delimiter="")


def comments_in(text: str) -> list[str]:
    """Return the comments of a TOML text."""
    comments = []
    for found in _STRING_OR_COMMENT.findall(text):
        if found.startswith("#"):
            comments.append(found)
    return comments
