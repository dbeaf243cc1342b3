"""Long lists, one page at a time: the options --limit and --after, and the cursor between pages.

The cursor names the last row of a page by its *position*: a text or a number by which the list is
sorted. So rows that are added or removed meanwhile neither repeat nor hide others.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

import typer

from .contract.errors import InvalidValues, Mistake
from .contract.response import count_fitting
from .contract.text import quoted

MAX_LIMIT = 10_000

LimitOption = Annotated[
    int,
    typer.Option("--limit", min=1, max=MAX_LIMIT, metavar="N", help="Show at most N items."),
]
AfterOption = Annotated[
    str | None,
    typer.Option(
        "--after",
        "--cursor",
        metavar="CURSOR",
        help="Start after CURSOR, the `meta.next_cursor` of the previous page.",
    ),
]

_CURSOR_PREFIX = "after:"

_MAX_POSITION_DIGITS = 18
"""More digits than any position has. Every such number fits into the 64 bits of a database.

Python itself refuses to convert a text of more than 4300 digits.
"""

Row = TypeVar("Row")


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Some rows of a list."""

    rows: list[Row]
    next_cursor: str | None
    """The value of --after for the next page. It is None on the last page."""


def first_page(rows: list[Row], limit: int, position_of: Callable[[Row], object]) -> Page[Row]:
    """Return the first `limit` rows, or fewer if they are so long that the page would be too large.

    `rows` begins after the cursor. It is enough if it has one row more than the limit: this row
    shows that there is a next page.
    """
    page = rows[: min(limit, count_fitting(rows))]
    if len(page) == len(rows):
        return Page(page, next_cursor=None)
    return Page(page, next_cursor=f"{_CURSOR_PREFIX}{position_of(page[-1])}")


def page_of(
    rows: Iterable[Row],
    limit: int,
    cursor: str | None,
    position_of: Callable[[Row], str],
    *,
    descending: bool = False,
) -> Page[Row]:
    """Return one page of a whole list, sorted by position. No two rows have the same position."""
    last_position = read_cursor(cursor)
    remaining = []
    for row in sorted(rows, key=position_of, reverse=descending):
        if not last_position:
            is_after = True
        elif descending:
            is_after = position_of(row) < last_position
        else:
            is_after = position_of(row) > last_position
        if is_after:
            remaining.append(row)
    return first_page(remaining, limit, position_of)


def read_cursor(cursor: str | None) -> str:
    """Return the position of the last row of the previous page, or "" if there is no cursor.

    Raise InvalidValues if it is not a cursor.
    """
    if cursor is None:
        return ""
    if not cursor.startswith(_CURSOR_PREFIX):
        raise wrong_cursor(cursor)
    return cursor.removeprefix(_CURSOR_PREFIX)


def read_number_cursor(cursor: str | None) -> int:
    """Return the position of the last row of the previous page, or 0 if there is no cursor.

    Raise InvalidValues if it is not a cursor of a list that is sorted by numbers.
    """
    if cursor is None:
        return 0
    position = read_cursor(cursor)
    if not position.isdecimal() or len(position) > _MAX_POSITION_DIGITS:
        raise wrong_cursor(cursor)
    return int(position)


def wrong_cursor(cursor: str) -> InvalidValues:
    """Return the error for a value of --after that is not a cursor."""
    message = f"{quoted(cursor)} is not a valid cursor"
    hint = "Pass the `meta.next_cursor` of the previous page."
    return InvalidValues(Mistake("--after", "INVALID_VALUE", message, cursor, hint))
