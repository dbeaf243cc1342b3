"""The value of one counter."""

import typer

from sampletool.kit.global_options import RawOption
from sampletool.state.commands import _options
from sampletool.state.commands._values import Counter
from sampletool.state.opening import store_of

spec = _options.reads_store("counter get builds")


def command(
    ctx: typer.Context, name: _options.NameArgument, store: _options.StoreOption = None, raw: RawOption = False
) -> Counter:
    """Show the value of a counter."""
    return Counter(name, store_of(ctx.obj, store).counter_get(name))
