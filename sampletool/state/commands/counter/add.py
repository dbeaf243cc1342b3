"""Add to a counter, and get the value that this call made."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands._options import FenceOption, KeyOption, StoreOption, changes_store, counter_names
from sampletool.state.commands._values import answered
from sampletool.state.errors import CounterRange
from sampletool.state.opening import store_of
from sampletool.state.promises import Once

spec = changes_store(
    "counter add builds",
    "counter add builds 5 --idempotency-key run-7",
    errors=(CounterRange,),
    idempotent=False,
)


@dataclass(frozen=True)
class Counter:
    name: str
    value: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.name} = {self.value}"]


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A new one begins at 0.", autocompletion=counter_names)],
    amount: Annotated[int, typer.Argument(metavar="[AMOUNT]", help="Write `--` before a negative one.")] = 1,
    idempotency_key: KeyOption = None,
    fence: FenceOption = None,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Counter:
    """Add to a counter.

    No addition is lost, and the answer is the value that this one made.
    """
    context: Context = ctx.obj
    counted = answered(context, store_of(context, store).counter_add(name, amount, Once(idempotency_key, fence)))
    return Counter(name, counted.value, counted.effect)
