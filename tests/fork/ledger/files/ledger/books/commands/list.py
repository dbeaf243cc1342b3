"""List the bookings."""

from dataclasses import dataclass

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import NoWorkspace
from ...kit.contract.table import Line, header_row
from ...kit.pages import AfterOption, LimitOption, page_of
from ...kit.safety.toml_file import read_toml
from ..bookings import Booking, bookings_in, books_of

spec = CommandSpec(
    effect="nothing",
    errors=(NoWorkspace,),
    reads=("workspace",),
    examples=("list", "list --limit 20"),
)


@dataclass(frozen=True)
class Bookings:
    """One page of the list."""

    bookings: list[Booking]
    next_cursor: str | None

    def lines(self) -> list[Line]:
        """Return a table: a tuple of texts for each row."""
        table = [header_row("date", "reference", "account", "cents", "text")]
        for booking in self.bookings:
            cents = str(booking.cents)
            table.append((booking.date, booking.reference, booking.account, cents, booking.text))
        return table


def position_of(booking: Booking) -> str:
    """Return the text by which the list is sorted. No two bookings have the same one."""
    return f"{booking.date} {booking.reference}"


def command(
    ctx: typer.Context,
    limit: LimitOption = 100,
    after: AfterOption = None,
) -> Bookings:
    """List the bookings, sorted by date and reference."""
    context: Context = ctx.obj
    bookings = bookings_in(read_toml(books_of(context)))
    page = page_of(list(bookings.values()), limit, after, position_of)
    return Bookings(page.rows, page.next_cursor)
