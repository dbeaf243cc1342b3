"""Remove a value."""

import typer

from ....kit.contract.errors import VersionConflict
from ....kit.global_options import DryRunOption
from ...protocol import Once
from .. import _store

spec = _store.changes(
    "state unset plan",
    "state unset leader --if-version 1",
    errors=(VersionConflict,),
    before=("state set plan draft", "state set leader agent-1"),
    destroys="The value.",
)


def command(
    ctx: typer.Context,
    key: _store.ValueKeyArgument,
    if_version: _store.IfVersionOption = None,
    idempotency_key: _store.KeyOption = None,
    fence: _store.FenceOption = None,
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> _store.ValueChanged:
    """Remove a value.

    If the key gets a new value later, its version is higher than all earlier ones.
    """
    once = Once(idempotency_key, fence)
    written = _store.connect(ctx, store).state_unset(key, if_version=if_version, once=once)
    return _store.ValueChanged(
        key=key,
        version=written.version,
        effect=written.effect,
        replayed=written.replayed,
    )
