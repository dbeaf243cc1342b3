"""Every item, and whether there are few of it."""

from typing import NamedTuple

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import NoWorkspace
from ....kit.contract.table import Line, header_row
from ....kit.safety.toml_file import read_toml
from ...stock import counts, stock_file

spec = CommandSpec(effect="nothing", errors=(NoWorkspace,), examples=("inventory list",))


class Item(NamedTuple):
    item: str
    pieces: int
    is_low: bool


class Items(NamedTuple):
    items: list[Item]

    def lines(self) -> list[Line]:
        head = header_row("item", "pieces", "")
        return [head, *((each.item, str(each.pieces), "few" if each.is_low else "") for each in self.items)]


def command(ctx: typer.Context) -> Items:
    """List the items, and which are few.

    Fewer than the setting scarce_below are few.
    """
    context: Context = ctx.obj
    low = context.settings.value("scarce_below")
    stock = counts(read_toml(stock_file(context)))
    return Items([Item(item, pieces, pieces < low) for item, pieces in sorted(stock.items())])
