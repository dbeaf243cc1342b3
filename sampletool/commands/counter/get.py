"""The value of one counter."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.commands._store_options import READING, StoreOption
from sampletool.contract.promise import Promise
from sampletool.wiring import Wiring

promise = Promise(effect="nothing", ends_with=READING, examples=("tool counter get builds",))


@dataclass(frozen=True)
class Counter:
    name: str
    value: int

    def lines(self) -> list[str]:
        return [str(self.value)]


def get_counter(wiring: Wiring, name: str) -> Counter:
    return Counter(name, wiring.store.counter_get(name))


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="One that nobody added to is 0.")],
    store: StoreOption = None,
) -> Counter:
    """Show the value of a counter."""
    return get_counter(ctx.obj, name)
