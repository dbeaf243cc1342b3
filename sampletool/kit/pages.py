"""Long lists, one page at a time: the options --limit and --after, and the cursor between pages.

The cursor names the last row of a page by its *position*: a text or a number by which the list is
sorted. So rows that are added or removed meanwhile neither repeat nor hide others.

A caller sees the cursor `config.list:jobs`: the list, and the position of the last row. A list
refuses the cursor of another list, because it would start anywhere. The code of a command sees only
the position: app.py adds the name of the command, and the option --after checks and removes it.
cursor.py defines how a cursor is written.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Generic, TypeVar

import typer

from .context import Context
from .contract.errors import InvalidValues, Mistake
from .contract.response import count_fitting
from .contract.text import quoted
from .cursor import parse_cursor

MAX_LIMIT = 10_000

_HINT = "Pass the `meta.next_cursor` of the previous page."


class _WrongCursor(ValueError):
    """The value of --after is not a cursor, or it is the cursor of another list."""

    def __init__(self, problem: str, cursor: str) -> None:
        super().__init__(problem)
        self.value = cursor
        self.suggestion = _HINT


def _position_in(ctx: typer.Context, cursor: str | None) -> str | None:
    """Return the position in a cursor of this list. Raise BadParameter if it is not one."""
    if cursor is None:
        return None
    context: Context = ctx.obj
    try:
        list_name, position = parse_cursor(cursor)
    except ValueError:
        problem = f"{quoted(cursor)} is not a valid cursor"
        raise typer.BadParameter(problem) from _WrongCursor(problem, cursor)
    if list_name == context.command:
        return position
    problem = (
        f"{quoted(cursor)} is not a cursor of this list. "
        f"This list is {context.command}, and the cursor is from {quoted(list_name)}"
    )
    raise typer.BadParameter(problem) from _WrongCursor(problem, cursor)


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
        callback=_position_in,
        help="Start after CURSOR, the `meta.next_cursor` of the previous page.",
    ),
]
"""The position after which the page starts, or None for the first page."""

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
    """The position of the last row. It is None on the last page."""
    total: int | None = None
    """How many rows the whole list has. It is None if they were not counted."""


def first_page(rows: list[Row], limit: int, position_of: Callable[[Row], object]) -> Page[Row]:
    """Return the first `limit` rows, or fewer if they are so long that the page would be too large.

    `rows` begins after the cursor. It is enough if it has one row more than the limit: this row
    shows that there is a next page.
    """
    page = rows[: min(limit, count_fitting(rows))]
    if len(page) == len(rows):
        return Page(page, next_cursor=None)
    return Page(page, next_cursor=str(position_of(page[-1])))


def page_of(
    rows: Iterable[Row],
    limit: int,
    last_position: str | None,
    position_of: Callable[[Row], str],
    *,
    descending: bool = False,
) -> Page[Row]:
    """Return one page of a whole list, sorted by position. No two rows have the same position.

    `last_position` is the value of --after.
    """
    all_rows = sorted(rows, key=position_of, reverse=descending)
    remaining = []
    for row in all_rows:
        if last_position is None:
            is_after = True
        elif descending:
            is_after = position_of(row) < last_position
        else:
            is_after = position_of(row) > last_position
        if is_after:
            remaining.append(row)
    page = first_page(remaining, limit, position_of)
    return replace(page, total=len(all_rows))


def read_number(last_position: str | None) -> int:
    """Return the position of the last row as a number. It is 0 before the first page.

    Raise InvalidValues if it is not the position in a list that is sorted by numbers.
    """
    if last_position is None:
        return 0
    if not last_position.isdecimal() or len(last_position) > _MAX_POSITION_DIGITS:
        raise wrong_cursor(last_position)
    return int(last_position)


def wrong_cursor(cursor: str) -> InvalidValues:
    """Return the error for a value of --after that is not a cursor."""
    message = f"{quoted(cursor)} is not a valid cursor"
    return InvalidValues(Mistake("--after", "INVALID_VALUE", message, cursor, _HINT))
