"""Lay out the text output of a command: plain lines, and rows in aligned columns.

Columns are aligned by display width: a terminal shows a Chinese character or an emoji in two
columns, and a combining accent in none. If the columns of a table do not fit into the terminal, the
widest ones are narrowed, and the cells that are cut end with `…`.

Cells are data, so control characters are escaped.
"""

from collections.abc import Iterable, Sequence

from .display_width import cut, display_width
from .text import BOLD, PLAIN, printable

Row = tuple[str, ...]

Line = str | Row
"""A line of text, or a row of a table."""

_GAP = "  "
_ELLIPSIS = "…"

_NARROWEST_COLUMN = 8
"""Columns are not narrowed any further, even if the table then does not fit."""


class Painted(str):
    """A cell or a line that has a colour if colours are wanted."""

    colour: str

    def __new__(cls, text: str, colour: str) -> "Painted":
        """Add a colour, such as text.RED, to a text."""
        painted = super().__new__(cls, text)
        painted.colour = colour
        return painted


def header_row(*names: str) -> Line:
    """Return the first row of a table, with the names of the columns."""
    return tuple(Painted(name.upper(), BOLD) for name in names)


def laid_out(lines: Iterable[Line], width: int | None, *, colour: bool) -> list[str]:
    """Return each line or row as one line of text.

    Rows that follow one another are one table. `width` is that of the terminal. If it is None, the
    text may be as wide as it needs.
    """
    output: list[str] = []
    table: list[Row] = []
    for line in lines:
        if isinstance(line, tuple):
            table.append(line)
        else:
            output += _lay_out_table(table, width, colour)
            table = []
            output.append(_paint(printable(line), line, colour))
    output += _lay_out_table(table, width, colour)
    return output


def _lay_out_table(rows: Sequence[Row], width: int | None, colour: bool) -> list[str]:
    """Return the rows as lines of text."""
    widths = _natural_widths(rows)
    if width is not None:
        gaps = len(_GAP) * (len(widths) - 1)
        _narrow(widths, width - gaps)
    lines = []
    for row in rows:
        cells = []
        for cell, cell_width in zip(row, widths, strict=True):
            shown = _fit(printable(cell), cell_width)
            cells.append(_paint(shown, cell, colour))
        lines.append(_GAP.join(cells).rstrip())
    return lines


def _natural_widths(rows: Sequence[Row]) -> list[int]:
    """Return the width of each column: that of its widest cell."""
    widths = []
    for column in zip(*rows, strict=True):
        widths.append(max(display_width(printable(cell)) for cell in column))
    return widths


def _narrow(widths: list[int], room: int) -> None:
    """Make the widest columns narrower until all of them fit, or none can be narrowed."""
    while sum(widths) > room:
        widest = max(widths)
        if widest <= _NARROWEST_COLUMN:
            return
        widths[widths.index(widest)] -= 1


def _fit(text: str, width: int) -> str:
    """Return a text of exactly this display width: padded with spaces, or cut."""
    text_width = display_width(text)
    if text_width > width:
        beginning = cut(text, width - len(_ELLIPSIS))
        text = beginning + _ELLIPSIS
        # This can be less than `width`, if a wide character did not fit.
        text_width = display_width(beginning) + len(_ELLIPSIS)
    return text + " " * (width - text_width)


def _paint(shown: str, original: str, colour: bool) -> str:
    """Return the text, in the colour of the original if it has one and colours are wanted."""
    if colour and isinstance(original, Painted):
        return f"{original.colour}{shown}{PLAIN}"
    return shown
