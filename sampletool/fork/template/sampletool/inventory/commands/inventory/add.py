"""Add pieces of an item."""

from typing import Annotated

import typer

from ....kit.context import Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import NoWorkspace
from ....kit.global_options import DryRunOption
from ...stock import Changed, change, counts, stock_file

spec = CommandSpec(
    effect="files", errors=(NoWorkspace,), locks=("in_stock.toml",), idempotent=False, examples=("inventory add screw",)
)


def command(
    ctx: typer.Context,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="What it is.")],
    pieces: Annotated[int, typer.Argument(metavar="PIECES", min=1, help="How many come to it.")] = 1,
    dry_run: DryRunOption = False,
) -> Changed:
    """Add pieces of an item.

    The file is locked while it is read and changed: no pieces are lost when many callers add at once.
    """
    context: Context = ctx.obj
    with context.editing(stock_file(context), dry_run=dry_run) as file:
        added = change(file, item, counts(file.before).get(item, 0) + pieces)
        file.write()
    return added
