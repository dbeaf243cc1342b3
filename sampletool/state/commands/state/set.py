"""Set a value: always, only over the version you read, or only if there is none."""

from typing import Annotated, Any, NamedTuple

import typer

from sampletool.kit.contract.answer import UNTRUSTED, Effect
from sampletool.kit.contract.errors import VersionConflict
from sampletool.kit.global_options import AllowEmptyOption, DryRunOption
from sampletool.state.commands import _options
from sampletool.state.commands._values import answered, parse_value, read_input
from sampletool.state.opening import store_of
from sampletool.state.promises import Once

spec = _options.changes_store(
    "state set plan draft",
    "state set plan final --if-version 1",
    "state set leader agent-1 --if-version 0 --expires 60s",
    errors=(VersionConflict,),
    idempotent=False,
    destroys="The value that the key had; with --if-version only one that you have read.",
)


class Changed(NamedTuple):
    key: str
    value: Annotated[Any, UNTRUSTED]
    version: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.key}: {self.effect}, version {self.version}"]


def command(
    ctx: typer.Context,
    key: _options.ValueKeyArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, else text; `-` reads it from stdin.")],
    if_version: _options.IfVersionOption = None,
    expires: Annotated[
        int | None, typer.Option(metavar="DURATION", parser=_options.parse_ms, help="Expires after this long.")
    ] = None,
    as_text: Annotated[bool, typer.Option("--string", help="Take the value as text.")] = False,
    allow_empty: AllowEmptyOption = False,
    idempotency_key: _options.KeyOption = None,
    fence: _options.FenceOption = None,
    store: _options.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Set a value.

    With --if-version nobody's change is overwritten unseen.
    """
    if value == "-":
        value = read_input("-", ctx.obj.signals, allow_empty=allow_empty).removesuffix("\n")
    parsed = value if as_text else parse_value(value, ctx.obj)
    once = Once(idempotency_key, fence)
    written = store_of(ctx.obj, store).state_set(key, parsed, if_version=if_version, expires_ms=expires, once=once)
    answered(ctx, written)
    return Changed(key, parsed, written.version, written.effect)
