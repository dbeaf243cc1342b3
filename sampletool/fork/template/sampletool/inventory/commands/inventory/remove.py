"""Remove pieces of an item."""

from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import NoWorkspace
from ....kit.global_options import DryRunOption
from ...errors import NotEnough
from ...stock import Changed, change, counts, stock_file

spec = CommandSpec(
    effect="files", errors=(NoWorkspace, NotEnough), locks=("in_stock.toml",), idempotent=False,
    before=("inventory add screw 20",), examples=("inventory remove screw 5",),
)  # fmt: skip


def command(
    ctx: typer.Context,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="What it is.")],
    pieces: Annotated[int, typer.Argument(metavar="PIECES", min=1, help="How many are taken.")] = 1,
    dry_run: DryRunOption = False,
) -> Changed:
    """Remove pieces of an item."""
    context: Context = ctx.obj
    with context.editing(stock_file(context), dry_run=dry_run) as file:
        there = counts(file.before).get(item, 0)
        if there < pieces:
            raise NotEnough(item=item, there=there, wanted=pieces)
        removed = change(file, item, there - pieces)
        file.write()
    return removed
