"""Add pieces of an item."""

from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import NoWorkspace
from ....kit.global_options import DryRunOption
from ...stock import Changed, counts, inventory_of, set_pieces

spec = CommandSpec(
    effect="files",
    errors=(NoWorkspace,),
    locks=("in_stock.toml",),
    idempotent=False,
    examples=("inventory add screw", "inventory add screw 20"),
)


def command(
    ctx: typer.Context,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Item to add, for example screw.")],
    pieces: Annotated[
        int,
        typer.Argument(metavar="PIECES", min=1, help="Number of pieces to add."),
    ] = 1,
    dry_run: DryRunOption = False,
) -> Changed:
    """Add pieces of an item.

    Several processes can add pieces at the same time. All of them are counted.
    """
    context: Context = ctx.obj
    with context.editing(inventory_of(context), dry_run=dry_run) as file:
        pieces_before = counts(file.before).get(item, 0)
        added = set_pieces(file, item, pieces_before + pieces)
        file.write()
    return added
