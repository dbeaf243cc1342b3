"""Add a booking."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import InvalidValues, Mistake, NoWorkspace
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption
from ..bookings import FILE, MAX_CENTS, Booking, add_bookings, books_of, is_date
from ..errors import DuplicateBooking

spec = CommandSpec(
    effect="files",
    errors=(NoWorkspace, DuplicateBooking),
    locks=(FILE,),
    examples=(
        "add tea-1 2026-01-31 cash 350 Tea",
        "add --dry-run tea-2 2026-01-31 cash -- -350 Tea",
    ),
)


@dataclass(frozen=True)
class Added:
    """The booking, and whether it is new."""

    effect: Effect
    booking: Booking

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [f"{self.booking.reference}: {self.effect}"]


def check_date(date: str) -> None:
    """Raise InvalidValues if the text is not a date."""
    if not is_date(date):
        message = "The date must be like 2026-01-31"
        raise InvalidValues(Mistake("DATE", "INVALID_VALUE", message, date))


def command(
    ctx: typer.Context,
    reference: Annotated[
        str,
        typer.Argument(metavar="REFERENCE", help="Reference of the booking, for example tea-1."),
    ],
    date: Annotated[
        str,
        typer.Argument(metavar="DATE", help="Date of the booking, for example 2026-01-31."),
    ],
    account: Annotated[
        str,
        typer.Argument(metavar="ACCOUNT", help="Account that receives the amount."),
    ],
    cents: Annotated[
        int,
        typer.Argument(
            metavar="CENTS",
            min=-MAX_CENTS,
            max=MAX_CENTS,
            help="Amount in cents. Put -- before a negative one.",
        ),
    ],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="Text of the booking.")],
    dry_run: DryRunOption = False,
) -> Added:
    """Add a booking.

    Adding the same booking again changes nothing, so the command can be repeated safely.
    """
    context: Context = ctx.obj
    check_date(date)
    booking = Booking(reference=reference, date=date, account=account, cents=cents, text=text)
    with context.editing(books_of(context), dry_run=dry_run) as file:
        number_of_new = add_bookings(file, [booking])
        file.write()
    if number_of_new == 0:
        return Added("unchanged", booking)
    return Added("created", booking)
