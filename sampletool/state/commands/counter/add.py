"""Add to a counter, and get the value that this call made."""

from typing import Annotated, NamedTuple

import typer

from sampletool.kit.contract.answer import Effect
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _options
from sampletool.state.commands._values import answered
from sampletool.state.errors import CounterRange
from sampletool.state.opening import store_of
from sampletool.state.promises import Once

spec = _options.changes_store(
    "counter add builds",
    "counter add builds 5 --idempotency-key run-7",
    errors=(CounterRange,),
    idempotent=False,
)


class Counter(NamedTuple):
    name: str
    value: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.name} = {self.value}"]


def command(
    ctx: typer.Context,
    name: _options.NameArgument,
    amount: Annotated[int, typer.Argument(metavar="[AMOUNT]", help="Write `--` before a negative one.")] = 1,
    idempotency_key: _options.KeyOption = None,
    fence: _options.FenceOption = None,
    store: _options.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Counter:
    """Add to a counter.

    No addition is lost, and the answer is the value that this one made.
    """
    counted = answered(ctx, store_of(ctx.obj, store).counter_add(name, amount, Once(idempotency_key, fence)))
    return Counter(name, counted.value, counted.effect)
