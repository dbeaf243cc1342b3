"""Add to a counter, and show the value that this command produced."""

from typing import Annotated

import typer

from ....kit.global_options import DryRunOption
from ...errors import CounterRange
from ...protocol import Once
from .. import _store

spec = _store.changes(
    "counter add builds",
    "counter add builds 5 --idempotency-key run-7",
    errors=(CounterRange,),
    idempotent=False,
    prints_value=True,
)


def command(
    ctx: typer.Context,
    name: _store.NameArgument,
    amount: Annotated[
        int,
        typer.Argument(
            metavar="[AMOUNT]",
            help="Number to add. Write `--` before a negative number.",
        ),
    ] = 1,
    idempotency_key: _store.KeyOption = None,
    fence: _store.FenceOption = None,
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> _store.Counter:
    """Add a number to a counter, and show the new value.

    A counter that does not exist yet starts at 0. When several commands add at the same time, none
    of the additions is lost.
    """
    once = Once(idempotency_key, fence)
    counted = _store.connect(ctx, store).counter_add(name, amount, once)
    return _store.Counter(
        name=name,
        value=counted.value,
        effect=counted.effect,
        replayed=counted.replayed,
    )
