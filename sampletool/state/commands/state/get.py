"""A value, and the version to change it with."""

from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.errors import KeyNotFound
from sampletool.kit.global_options import RawOption
from sampletool.state.commands._options import StoreOption, reads_store, state_keys
from sampletool.state.commands._values import Value, told
from sampletool.state.opening import store_of

spec = reads_store("state get plan", errors=(KeyNotFound,), before=("state set plan draft",))


def command(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", autocompletion=state_keys)],
    store: StoreOption = None,
    raw: RawOption = False,
) -> Value:
    """Show a value and its version."""
    context: Context = ctx.obj
    return told(store_of(context, store).state_get(key))
