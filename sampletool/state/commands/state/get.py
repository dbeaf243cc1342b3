"""A value, and the version to change it with."""

import typer

from sampletool.kit.contract.errors import KeyNotFound
from sampletool.kit.global_options import RawOption
from sampletool.state.commands import _options
from sampletool.state.opening import store_of
from sampletool.state.promises import Value

spec = _options.reads_store("state get plan", errors=(KeyNotFound,), before=("state set plan draft",))


def command(
    ctx: typer.Context, key: _options.ValueKeyArgument, store: _options.StoreOption = None, raw: RawOption = False
) -> Value:
    """Show a value and its version."""
    return store_of(ctx.obj, store).state_get(key)
