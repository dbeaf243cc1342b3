"""Estimate whether tomlkit takes too long to parse a TOML text."""

from ..safety.toml_limits import split_at_delimiters

_MAX_PARSE_COST = 1_000_000
"""The highest cost of a text that is edited: see `_parse_cost`."""


def is_expensive(text: str) -> bool:
    """Return whether tomlkit could need more than a few seconds to parse the text."""
    return _parse_cost(text) > _MAX_PARSE_COST


def _parse_cost(text: str) -> float:
    """Return the square of the number of dots in keys, times the dots of the longest key.

    The time that tomlkit needs to parse a text grows like this number, because tomlkit copies the
    tables that dotted keys share again and again. 400 lines such as `a.b.c.k1 = 1` below a header
    took it 6 s, and 100 lines with 12 dots each took it more than 10 s. A dot in a header costs
    less, so it counts as half a dot.

    Of the texts with a cost of at most 1,000,000 that we tried, the slowest one took tomlkit 8 s.
    It had 210 KB with 2,000 headers of lists of tables. Files that people write take milliseconds.
    """
    all_dots = 0.0
    most_dots = 0
    last_delimiter = ""
    for piece in split_at_delimiters(text):
        is_header = last_delimiter == "[" and piece.delimiter == "]"
        if piece.delimiter == "=":
            all_dots += piece.dots
            most_dots = max(most_dots, piece.dots)
        elif is_header:
            all_dots += piece.dots / 2
            most_dots = max(most_dots, piece.dots)
        last_delimiter = piece.delimiter
    return all_dots**2 * most_dots
