"""Show a value, and the version that is needed to change it."""

import typer

from ....kit.contract.errors import KeyNotFound
from ....kit.global_options import RawOption
from ...protocol import Value
from .. import _store

spec = _store.reads("state get plan", errors=(KeyNotFound,), before=("state set plan draft",))


def command(
    ctx: typer.Context,
    key: _store.ValueKeyArgument,
    store: _store.StoreOption = None,
    # The kit reads --raw from the command line, and prints the response accordingly.
    raw: RawOption = False,
) -> Value:
    """Show a value and its version."""
    return _store.connect(ctx, store).state_get(key)
