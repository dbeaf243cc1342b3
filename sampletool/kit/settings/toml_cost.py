"""Estimate whether tomlkit takes too long to parse a TOML text."""

from ..safety.toml_limits import split_at_delimiters

_MAX_PARSE_COST = 1_000_000
"""The highest cost of a text that is edited: see `_parse_cost`."""


def is_expensive(text: str) -> bool:
    """Return whether tomlkit could need more than a few seconds to parse the text."""
    return _parse_cost(text) > _MAX_PARSE_COST


def _parse_cost(text: str) -> float:
    """Return an estimate of the time that tomlkit takes to parse the text.

    tomlkit copies the tables that dotted keys share again and again. With 400 lines such as
    `a.b.c.k1 = 1` below a header it took 6 s, and with 100 lines of 12 dots more than 10 s. So the
    time grows with the square of the number of dots, and with the dots of the longest key. Dots in
    headers cost less.

    Of the texts that we tried, the slowest one with a cost of at most 1,000,000 took it 8 s. It had
    210 KB, and 2,000 lists of tables in turn. Files that people write take milliseconds.
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
