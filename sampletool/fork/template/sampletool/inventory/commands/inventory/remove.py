"""Remove pieces of an item."""

from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import NoWorkspace
from ....kit.global_options import DryRunOption
from ...errors import NotEnough
from ...stock import Changed, counts, inventory_of, set_pieces

spec = CommandSpec(
    effect="files",
    errors=(NoWorkspace, NotEnough),
    locks=("in_stock.toml",),
    idempotent=False,
    before=("inventory add screw 20",),
    examples=("inventory remove screw 5",),
)


def command(
    ctx: typer.Context,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="Item to remove, for example screw.")],
    pieces: Annotated[
        int,
        typer.Argument(metavar="PIECES", min=1, help="Number of pieces to remove."),
    ] = 1,
    dry_run: DryRunOption = False,
) -> Changed:
    """Remove pieces of an item.

    Fails with NOT_ENOUGH, and removes nothing, if there are not enough pieces.
    """
    context: Context = ctx.obj
    with context.editing(inventory_of(context), dry_run=dry_run) as file:
        there = counts(file.before).get(item, 0)
        if there < pieces:
            raise NotEnough(item=item, there=there, wanted=pieces)
        removed = set_pieces(file, item, there - pieces)
        file.write()
    return removed
