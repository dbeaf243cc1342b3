"""The value of one counter."""

from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.global_options import RawOption
from sampletool.state.commands._options import StoreOption, counter_names, reads_store
from sampletool.state.commands._values import Counter
from sampletool.state.opening import store_of

spec = reads_store("counter get builds")


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A new one is 0.", autocompletion=counter_names)],
    store: StoreOption = None,
    raw: RawOption = False,
) -> Counter:
    """Show the value of a counter."""
    context: Context = ctx.obj
    return Counter(name, store_of(context, store).counter_get(name))
