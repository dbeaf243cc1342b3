"""Show the value of a counter."""

import typer

from ....kit.global_options import RawOption
from .. import _store

spec = _store.reads("counter get builds")


def command(
    ctx: typer.Context,
    name: _store.NameArgument,
    store: _store.StoreOption = None,
    # The kit reads --raw from the command line, and prints the response accordingly.
    raw: RawOption = False,
) -> _store.Counter:
    """Show the value of a counter.

    A counter that has never been changed is 0.
    """
    value = _store.connect(ctx, store).counter_get(name)
    return _store.Counter(name, value)
