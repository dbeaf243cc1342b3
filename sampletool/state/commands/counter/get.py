"""The value of one counter."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.global_options import RawOption
from sampletool.state.commands._options import StoreOption, counter_names, reads_store
from sampletool.state.opening import store_of

spec = reads_store("counter get builds")


@dataclass(frozen=True)
class Counter:
    name: str
    value: int

    def lines(self) -> list[str]:
        return [str(self.value)]


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A new one is 0.", autocompletion=counter_names)],
    store: StoreOption = None,
    raw: RawOption = False,
) -> Counter:
    """Show the value of a counter."""
    context: Context = ctx.obj
    return Counter(name, store_of(context, store).counter_get(name))
