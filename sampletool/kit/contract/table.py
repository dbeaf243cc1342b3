"""Lines for a person: text as it is, and rows of cells in aligned columns, as wide as the terminal.

Cells are data: control characters are escaped. Only where the columns do not fit is the widest cut, which ends in `…`.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from .text import BOLD, PLAIN, printable

Line = str | tuple[str, ...]
"""A row of cells, or text that is no part of a table."""
_GAP = "  "
_NARROWEST = 8


class Painted(str):
    """A cell or a line in colour, where colour is wanted."""

    colour: str

    def __new__(cls, text: str, colour: str) -> "Painted":
        cell = super().__new__(cls, text)
        cell.colour = colour
        return cell


def heads(*names: str) -> Line:
    """The first row of a table."""
    return tuple(Painted(name.upper(), BOLD) for name in names)


def laid_out(lines: Iterable[Line], width: int | None, *, colour: bool) -> list[str]:
    """Each as one line of text; rows that follow one another share their columns."""
    out: list[str] = []
    for is_row, group in groupby(lines, lambda line: isinstance(line, tuple)):
        some: list[Any] = list(group)
        out += _columns(some, width, colour) if is_row else [_cell(line, len(printable(line)), colour) for line in some]
    return out


def _columns(rows: Sequence[tuple[str, ...]], width: int | None, colour: bool) -> list[str]:
    widths = [max(len(printable(cell)) for cell in column) for column in zip(*rows, strict=True)]
    room = max(width - len(_GAP) * (len(widths) - 1), 0) if width else sum(widths)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    return [_GAP.join(map(_cell, row, widths, [colour] * len(row))).rstrip() for row in rows]


def _cell(text: str, width: int, colour: bool) -> str:
    shown = printable(text)
    shown = f"{shown if len(shown) <= width else f'{shown[: width - 1]}…':<{width}}"
    return f"{text.colour}{shown}{PLAIN}" if colour and isinstance(text, Painted) else shown
