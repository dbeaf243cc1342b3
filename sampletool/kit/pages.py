"""Lists a page at a time: the options that every list takes, and where the next page begins."""

from collections.abc import Callable, Iterable
from typing import Annotated, TypeVar

import typer

from .context import Context
from .contract.errors import InvalidValues, Mistake
from .contract.text import quoted

LimitOption = Annotated[int, typer.Option("--limit", min=1, max=10_000, metavar="N", help="How many at most.")]
AfterOption = Annotated[
    str | None, typer.Option("--after", "--cursor", metavar="CURSOR", help="Go on behind a page: its meta.next_cursor.")
]

_CURSOR = "after:"
_Row = TypeVar("_Row")


def page(context: Context, rows: list[_Row], limit: int, position: Callable[[_Row], object]) -> list[_Row]:
    """Up to `limit` of one row more than that: if it is there, the answer tells how to go on."""

    context.size.cursor_after = lambda count: f"{_CURSOR}{position(rows[count - 1])}"
    if len(rows) > limit:
        context.meta["next_cursor"] = context.size.cursor_after(limit)
    return rows[:limit]


def read_cursor(text: str | None, *, is_number: bool = False) -> str:
    """Where the page before ended; the beginning if there was none."""
    if text is None:
        return "0" if is_number else ""
    behind = text.removeprefix(_CURSOR)
    if behind == text or (is_number and not behind.isdecimal()):
        raise no_cursor(text)
    return behind


def no_cursor(text: str) -> InvalidValues:
    problem, hint = f"{quoted(text)} is not a cursor", "Pass meta.next_cursor of the page before."
    return InvalidValues(Mistake("--after", "INVALID_VALUE", problem, text, hint))


def page_of(
    context: Context,
    rows: Iterable[_Row],
    limit: int,
    after: str | None,
    position: Callable[[_Row], str],
    *,
    descending: bool = False,
) -> list[_Row]:
    """One page of what is all there, in the order of its positions."""
    ordered, behind = sorted(rows, key=position, reverse=descending), read_cursor(after)
    left = [row for row in ordered if not behind or (position(row) < behind if descending else position(row) > behind)]
    return page(context, left, limit, position)
