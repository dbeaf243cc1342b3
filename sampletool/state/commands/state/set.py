"""Set a value: always, only over the version you read, or only if there is none."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import UNTRUSTED, Effect
from sampletool.kit.contract.errors import VersionConflict
from sampletool.kit.global_options import AllowEmptyOption, DryRunOption
from sampletool.state.commands._options import FenceOption, KeyOption, StoreOption, changes_store, parse_ms, state_keys
from sampletool.state.commands._values import answered, parse_value, read_input
from sampletool.state.opening import store_of
from sampletool.state.promises import Once

spec = changes_store(
    "state set plan draft",
    "state set plan final --if-version 1",
    "state set leader agent-1 --if-version 0 --expires 60s",
    errors=(VersionConflict,),
    destroys="The value that the key had; with --if-version only one that you have read.",
)


@dataclass(frozen=True)
class Changed:
    key: str
    value: Annotated[Any, UNTRUSTED]
    version: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.key}: {self.effect}, version {self.version}"]


def command(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", autocompletion=state_keys)],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, else text; `-` reads it from stdin.")],
    if_version: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="Only if it is still at this version; 0: only if there is none."),
    ] = None,
    expires: Annotated[
        int | None, typer.Option(metavar="DURATION", parser=parse_ms, help="Expires after this long.")
    ] = None,
    as_text: Annotated[bool, typer.Option("--string", help="Take the value as text.")] = False,
    allow_empty: AllowEmptyOption = False,
    idempotency_key: KeyOption = None,
    fence: FenceOption = None,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Set a value.

    With --if-version nobody's change is overwritten unseen.
    """
    context: Context = ctx.obj
    if value == "-":
        value = read_input("-", context.signals, allow_empty=allow_empty).removesuffix("\n")
    parsed = parse_value(value, context, as_text=as_text)
    once = Once(idempotency_key, fence)
    written = store_of(context, store).state_set(key, parsed, if_version=if_version, expires_ms=expires, once=once)
    answered(context, written)
    return Changed(key, parsed, written.version, written.effect)
