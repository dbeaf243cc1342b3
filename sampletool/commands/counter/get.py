"""The value of one counter."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.commands._store_options import StoreOption, reads_store
from sampletool.wiring import Wiring

promise = reads_store("tool counter get builds")


@dataclass(frozen=True)
class Counter:
    name: str
    value: int

    def lines(self) -> list[str]:
        return [str(self.value)]


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A counter that nobody has added to is 0.")],
    store: StoreOption = None,
) -> Counter:
    """Show the value of a counter."""
    wiring: Wiring = ctx.obj
    return Counter(name, wiring.store.counter_get(name))
