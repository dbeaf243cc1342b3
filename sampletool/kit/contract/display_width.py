"""Measure, cut and wrap text by its display width: the number of columns that it needs.

A terminal shows a Chinese character or an emoji in two columns, and a combining accent in none. The
text must be printable: see text.printable.
"""

import textwrap


def display_width(text: str) -> int:
    """Return how many columns of a terminal the text needs."""
    if text.isascii():
        return len(text)
    # At the top, this would cost each command 10 ms (20% of `config get`).
    from wcwidth import wcswidth

    return wcswidth(text)


def cut(text: str, width: int) -> str:
    """Return the beginning of the text, with at most this display width."""
    if text.isascii():
        return text[:width]
    # See display_width().
    from wcwidth import iter_graphemes

    beginning = ""
    # A grapheme is what a reader sees as one character, such as a letter with its accents.
    for grapheme in iter_graphemes(text):
        if display_width(beginning + grapheme) > width:
            break
        beginning += grapheme
    return beginning


def wrap(text: str, width: int, first_indent: str, other_indent: str) -> list[str]:
    """Return the text in lines of at most this display width. Only a longer word is wider.

    Lines are broken at blanks, and not at hyphens.
    """
    if text.isascii():
        wrapper = textwrap.TextWrapper(
            width=width,
            initial_indent=first_indent,
            subsequent_indent=other_indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        return wrapper.wrap(text)
    # See display_width().
    from wcwidth import wrap as wrap_by_width

    return wrap_by_width(
        text,
        width,
        initial_indent=first_indent,
        subsequent_indent=other_indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
