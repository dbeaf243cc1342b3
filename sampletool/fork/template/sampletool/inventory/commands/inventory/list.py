"""List the items of the inventory."""

from dataclasses import dataclass

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import NoWorkspace
from ....kit.contract.table import Line, header_row
from ....kit.safety.toml_file import read_toml
from ...stock import counts, inventory_of

spec = CommandSpec(
    effect="nothing",
    errors=(NoWorkspace,),
    reads=("workspace", "settings"),
    examples=("inventory list",),
)


@dataclass(frozen=True)
class Item:
    """One row of the list."""

    item: str
    pieces: int
    is_scarce: bool


@dataclass(frozen=True)
class Items:
    """The list, sorted by name."""

    items: list[Item]

    def lines(self) -> list[Line]:
        """Return a table: a tuple of texts for each row."""
        table = [header_row("item", "pieces", "")]
        for row in self.items:
            remark = "scarce" if row.is_scarce else ""
            table.append((row.item, str(row.pieces), remark))
        return table


def command(ctx: typer.Context) -> Items:
    """List the items, and mark those that are scarce.

    An item is scarce if there are fewer pieces than the `scarce_below` setting says.
    """
    context: Context = ctx.obj
    scarce_below = context.settings.value("scarce_below")
    pieces_by_item = counts(read_toml(inventory_of(context)))
    items = []
    for item, pieces in sorted(pieces_by_item.items()):
        items.append(Item(item, pieces, is_scarce=pieces < scarce_below))
    return Items(items)
