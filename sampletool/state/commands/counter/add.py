"""Add to a counter, and get the value that this call made."""

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
    amount: Annotated[int, typer.Argument(metavar="[AMOUNT]", help="Write `--` before a negative one.")] = 1,
    idempotency_key: _store.KeyOption = None,
    fence: _store.FenceOption = None,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> _store.Counter:
    """Add to a counter.

    No addition is lost, and the answer is the value that this one made.
    """
    counted = _store.opened(ctx, store).counter_add(name, amount, Once(idempotency_key, fence))
    return _store.Counter(name, counted.value, counted.effect, counted.replayed)
