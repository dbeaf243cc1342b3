"""Remove a value."""

from typing import NamedTuple

import typer

from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.errors import VersionConflict
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _store
from sampletool.state.promises import Once

spec = _store.changes(
    "state unset plan",
    "state unset leader --if-version 1",
    errors=(VersionConflict,),
    before=("state set plan draft", "state set leader agent-1"),
    destroys="The value.",
)


class Removed(NamedTuple):
    key: str
    version: int
    """The one it had; 0 if there was none."""
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.key}: {self.effect}"]


def command(
    ctx: typer.Context,
    key: _store.ValueKeyArgument,
    if_version: _store.IfVersionOption = None,
    idempotency_key: _store.KeyOption = None,
    fence: _store.FenceOption = None,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Removed:
    """Remove a value.

    Its version is never used again.
    """
    once = Once(idempotency_key, fence)
    written = _store.answered(ctx, _store.opened(ctx, store).state_unset(key, if_version=if_version, once=once))
    return Removed(key, written.version, written.effect)
