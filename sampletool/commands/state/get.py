"""A value, and the version to change it with."""

from typing import Annotated

import typer

from sampletool.commands._store_options import StoreOption, reads_store
from sampletool.commands._store_values import Value, told
from sampletool.wiring import Wiring

promise = reads_store("tool state get plan")


def command(ctx: typer.Context, key: Annotated[str, typer.Argument(metavar="KEY")], store: StoreOption = None) -> Value:
    """Show a value and its version."""
    wiring: Wiring = ctx.obj
    return told(wiring.store.state_get(key))
