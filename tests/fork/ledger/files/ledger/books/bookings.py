"""Read and add bookings. They are in a TOML file in the workspace, one booking on each line:

    tea-1 = {date = "2026-01-31", account = "cash", cents = -350, text = "Tea"}

The key is the reference of the booking. A reference that is used twice would be counted twice, for
example if a file is imported again. So a second booking with the same reference is refused, unless
it is the same booking. Amounts are whole cents: the sum of fractions such as 0.1 is not exact.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Annotated

from ..kit.context import Context
from ..kit.contract.response import UNTRUSTED
from ..kit.safety.errors import InvalidToml
from ..kit.safety.toml_file import TomlEdit, TomlText
from ..kit.settings.change import set_keys
from .errors import DuplicateBooking

FILE = "bookings.toml"

MAX_CENTS = 10**12
"""The largest amount of a booking. With it, the sum of all bookings of a file is exact in JSON."""

_TYPES = {"date": str, "account": str, "cents": int, "text": str}


@dataclass(frozen=True)
class Booking:
    """An amount that an account receives. It is negative if the account spends it."""

    reference: Annotated[str, UNTRUSTED]
    date: str
    account: Annotated[str, UNTRUSTED]
    cents: int
    text: Annotated[str, UNTRUSTED]


def books_of(context: Context) -> Path:
    """Return the path of the file. Raise NoWorkspace outside of a workspace."""
    return context.workspace / FILE


def is_date(text: str) -> bool:
    """Return whether the text is a date such as 2026-01-31."""
    try:
        # Python also reads 20260131 and 2026-W05-6.
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def bookings_in(text: TomlText) -> dict[str, Booking]:
    """Return the bookings by their references. Raise InvalidToml if one of them is not complete."""
    bookings = {}
    # People edit this file by hand, so any value can be in it.
    for reference, values in text.document.items():
        if not _is_booking(values):
            raise InvalidToml(str(text.path), f"{reference} is not a booking")
        bookings[reference] = Booking(reference=reference, **values)
    return bookings


def _is_booking(values: object) -> bool:
    if not isinstance(values, dict) or values.keys() != _TYPES.keys():
        return False
    # Not isinstance(): True is an int.
    has_right_types = all(type(values[name]) is _TYPES[name] for name in _TYPES)
    return has_right_types and is_date(values["date"]) and abs(values["cents"]) <= MAX_CENTS


def add_bookings(file: TomlEdit, bookings: Iterable[Booking]) -> int:
    """Change the text of the file in memory, and return how many bookings are new.

    Raise DuplicateBooking if another booking has the same reference. Then the text stays as it was.
    """
    known = bookings_in(file.before)
    new: dict[tuple[str, ...], dict[str, str | int]] = {}
    for booking in bookings:
        existing = known.setdefault(booking.reference, booking)
        if existing != booking:
            raise DuplicateBooking(reference=booking.reference)
        if existing is booking:
            new[(booking.reference,)] = _values_of(booking)
    set_keys(file, new)
    return len(new)


def _values_of(booking: Booking) -> dict[str, str | int]:
    return {
        "date": booking.date,
        "account": booking.account,
        "cents": booking.cents,
        "text": booking.text,
    }
