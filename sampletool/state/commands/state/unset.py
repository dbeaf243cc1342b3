"""Remove a value."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.errors import VersionConflict
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands._options import FenceOption, KeyOption, StoreOption, changes_store, state_keys
from sampletool.state.commands._values import answered
from sampletool.state.opening import store_of
from sampletool.state.promises import Once

spec = changes_store(
    "state unset plan",
    "state unset leader --if-version 1",
    errors=(VersionConflict,),
    before=("state set plan draft", "state set leader agent-1"),
    destroys="The value.",
)


@dataclass(frozen=True)
class Removed:
    key: str
    version: int
    """The one it had; 0 if there was none."""
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.key}: {self.effect}"]


def command(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", autocompletion=state_keys)],
    if_version: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Only if it is still at this version.")
    ] = None,
    idempotency_key: KeyOption = None,
    fence: FenceOption = None,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Removed:
    """Remove a value.

    Its version is never used again.
    """
    context: Context = ctx.obj
    once = Once(idempotency_key, fence)
    written = answered(context, store_of(context, store).state_unset(key, if_version=if_version, once=once))
    return Removed(key, written.version, written.effect)
