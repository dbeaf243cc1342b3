"""Show the balance of each account."""

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import NoWorkspace
from ...kit.contract.response import UNTRUSTED
from ...kit.contract.table import Line, header_row
from ...kit.safety.toml_file import read_toml
from ..bookings import bookings_in, books_of

spec = CommandSpec(
    effect="nothing",
    errors=(NoWorkspace,),
    reads=("workspace", "settings"),
    before=("add tea-1 2026-01-31 cash 350 Tea",),
    examples=("balance",),
)


@dataclass(frozen=True)
class Balance:
    """The balance of one account."""

    account: Annotated[str, UNTRUSTED]
    cents: int
    """The exact balance."""
    rounded_cents: int
    """The balance as the setting `rounding` rounds it."""


@dataclass(frozen=True)
class Balances:
    """The balances of all accounts."""

    balances: list[Balance]

    def lines(self) -> list[Line]:
        """Return a table: a tuple of texts for each row."""
        table = [header_row("account", "balance")]
        for balance in self.balances:
            table.append((balance.account, show_amount(balance.rounded_cents)))
        return table


def round_cents(cents: int, rounding: str) -> int:
    """Return the amount, rounded to 100 cents. `rounding` is one of the choices of `rounding`."""
    # `//` rounds down, also below zero: -350 // 100 is -4.
    if rounding == "nearest":
        return (cents + 50) // 100 * 100
    if rounding == "down":
        return cents // 100 * 100
    return cents


def show_amount(cents: int) -> str:
    """Return an amount as people write it, such as -3.50. Only integers take part."""
    sign = "-" if cents < 0 else ""
    units, rest = divmod(abs(cents), 100)
    return f"{sign}{units}.{rest:02}"


def command(ctx: typer.Context) -> Balances:
    """Show the balance of each account."""
    context: Context = ctx.obj
    rounding = context.settings.value("rounding")
    sums: Counter[str] = Counter()
    for booking in bookings_in(read_toml(books_of(context))).values():
        sums[booking.account] += booking.cents
    balances = []
    for account, cents in sorted(sums.items()):
        balances.append(Balance(account, cents, round_cents(cents, rounding)))
    return Balances(balances)
