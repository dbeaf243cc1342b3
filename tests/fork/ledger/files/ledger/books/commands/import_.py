"""Import bookings from CSV files."""

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import NoWorkspace, WorkerLost
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption
from ...kit.work.progress import Progress
from ...kit.work.workers import running_workers
from ..bookings import FILE, MAX_CENTS, Booking, add_bookings, books_of, is_date
from ..errors import DuplicateBooking, InvalidLine

spec = CommandSpec(
    effect="files",
    errors=(NoWorkspace, DuplicateBooking, InvalidLine, WorkerLost),
    locks=(FILE,),
    reads=("workspace", "files"),
    examples=("import january.csv",),
)

# int() would also accept "4_2".
AMOUNT = re.compile("-?[0-9]{1,13}")


@dataclass(frozen=True)
class Imported:
    """How many bookings the files have, and how many of them are new."""

    effect: Effect
    bookings: int
    new: int

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [f"{self.new} of {self.bookings} bookings are new"]


def booking_in(row: list[str]) -> Booking:
    """Return the booking in a row. Raise ValueError with the reason if there is none."""
    if len(row) != 5:
        raise ValueError("not a reference, a date, an account, an amount and a text")
    reference, date, account, amount, text = row
    if not is_date(date):
        raise ValueError("the second column is not a date such as 2026-01-31")
    if not AMOUNT.fullmatch(amount) or abs(int(amount)) > MAX_CENTS:
        raise ValueError("the fourth column is not an amount in cents")
    return Booking(reference=reference, date=date, account=account, cents=int(amount), text=text)


def read_file(path: Path) -> list[Booking]:
    """Return the bookings of a file. This runs in a worker.

    Raise InvalidLine if a line is wrong, and OSError if the file cannot be read.
    """
    bookings = []
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        rows = csv.reader(file)
        for row in rows:
            try:
                bookings.append(booking_in(row))
            except ValueError as error:
                line = rows.line_num
                raise InvalidLine(path=str(path), line=line, reason=str(error)) from None
    return bookings


def read_all(context: Context, paths: list[Path]) -> list[Booking]:
    """Return the bookings of all files. Several files are read at the same time."""
    bookings = []
    with (
        Progress(context, "file", total=len(paths)) as progress,
        running_workers(
            read_file,
            paths,
            context.jobs(),
            context.signals,
            progress.beat,
        ) as results,
    ):
        for path, bookings_of_file in zip(paths, results, strict=True):
            bookings += bookings_of_file
            progress.finish(str(path), "read")
    return bookings


def command(
    ctx: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="CSV files: reference, date, account, cents, text."),
    ],
    dry_run: DryRunOption = False,
) -> Imported:
    """Import bookings from CSV files, either all of them or none.

    Bookings that are already in the books are skipped. So a file can be imported again.
    """
    context: Context = ctx.obj
    books = books_of(context)
    bookings = read_all(context, [context.cwd / file for file in files])
    # All files are read before the lock is taken, so other commands wait only for a moment.
    with context.editing(books, dry_run=dry_run) as file:
        number_of_new = add_bookings(file, bookings)
        file.write()
    effect: Effect = "updated" if number_of_new else "unchanged"
    return Imported(effect, len(bookings), number_of_new)
