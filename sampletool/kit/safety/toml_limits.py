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

# The four kinds of TOML strings, and comments. In double quotes, a backslash escapes the character
# behind it, so `\"` does not end the string. In single quotes, a backslash has no such meaning.
# Only strings in triple quotes can contain a line feed. They may end in up to five quotes: the last
# three end the string, and the others belong to it.
#
# An unfinished string matches too. It extends to the end of its line, or of the text (\Z). It makes
# the text invalid, so the text behind it does not matter. But if it did not match, each quote would
# make the search run to the end of the text. The time would be quadratic in the number of quotes.
_TRIPLE_DOUBLE_QUOTES = r'"{3} (?: \\. | [^\\] )*? (?: "{3,5} | \Z )'
_TRIPLE_SINGLE_QUOTES = r"'{3} .*? (?: '{3,5} | \Z )"
_DOUBLE_QUOTES = r'" (?: \\[^\n] | [^"\\\n] )* "?'
_SINGLE_QUOTES = r"' [^'\n]* '?"
_COMMENT = r"\# [^\n]*"

# Triple quotes come first: otherwise `""` would match as an empty string.
_STRING_OR_COMMENT = "|".join(
    [
        _TRIPLE_DOUBLE_QUOTES,
        _TRIPLE_SINGLE_QUOTES,
        _DOUBLE_QUOTES,
        _SINGLE_QUOTES,
        _COMMENT,
    ]
)
# With VERBOSE, the blanks in the patterns are ignored. With DOTALL, a dot is also a line feed.
_FLAGS = re.VERBOSE | re.DOTALL

_DELIMITER = r"([=,\[\]{}\n])"


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
    # The limit is in bytes, and a character has at least one. So a text with more characters than
    # that is certainly too long. read_toml() has checked the bytes of a file.
    if len(text) > MAX_TOML_BYTES:
        raise ValueError(f"it is {TOO_LARGE}")
    # A key of N parts is on one line and has N - 1 dots. Most files have no line with so many dots,
    # and need no closer look. For a file with 1,000 tables, this saves 7 ms.
    if all(line.count(".") < MAX_KEY_PARTS for line in text.split("\n")):
        return
    # The pieces and delimiters are as long as the text, so this is the start of the piece in it.
    position = 0
    for piece in split_at_delimiters(text):
        parts = piece.dots + 1
        if parts > MAX_KEY_PARTS:
            line = text.count("\n", 0, position) + 1
            raise ValueError(f"the key in line {line} has {parts} parts (at most {MAX_KEY_PARTS})")
        position += len(piece.text) + len(piece.delimiter)


def split_at_delimiters(text: str) -> Iterator[TextBeforeDelimiter]:
    """Split a TOML text at each delimiter: `=`, `,`, a bracket, a brace or a line feed.

    First, an `x` replaces each character of a string or a comment, so that no delimiter and no dot
    in them counts. Together, the pieces and delimiters are as long as the text.

    A key is never split: it is on one line, and outside of a string it contains only dots, blanks,
    letters, digits, dashes and underscores. So a piece has at least as many dots as the key in it.
    A piece that is not a key has few dots, because a number or a date has at most one.
    """
    without_strings = re.sub(
        _STRING_OR_COMMENT,
        lambda found: "x" * len(found.group()),
        text,
        flags=_FLAGS,
    )
    pieces = re.split(_DELIMITER, without_strings)
    # The pattern has a group, so split() returns the delimiters too: text, delimiter, ..., text.
    for index in range(0, len(pieces) - 1, 2):
        yield TextBeforeDelimiter(text=pieces[index], delimiter=pieces[index + 1])
    yield TextBeforeDelimiter(text=pieces[-1], delimiter="")


def comments_in(text: str) -> list[str]:
    """Return the comments of a TOML text."""
    comments = []
    for found in re.findall(_STRING_OR_COMMENT, text, flags=_FLAGS):
        if found.startswith("#"):
            comments.append(found)
    return comments
