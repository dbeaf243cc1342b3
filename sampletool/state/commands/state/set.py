"""Set a value: always, only over the version you read, or only if there is none."""

from typing import Annotated

import typer

from ....kit.contract.errors import VersionConflict
from ....kit.global_options import AllowEmptyOption, DryRunOption
from ...protocol import Once
from .. import _store
from .._values import parse_value, read_input

spec = _store.changes(
    "state set plan draft",
    "state set plan final --if-version 1",
    "state set leader agent-1 --if-version 0 --expires 60s",
    errors=(VersionConflict,),
    idempotent=False,
    destroys="The value that the key had; with --if-version only one that you have read.",
)


def command(
    ctx: typer.Context,
    key: _store.ValueKeyArgument,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="JSON, else text; `-` reads it from stdin.")],
    if_version: _store.IfVersionOption = None,
    expires: Annotated[int | None, _store.duration("Expires after this long.")] = None,
    as_text: Annotated[bool, typer.Option("--string", help="Take the value as text.")] = False,
    allow_empty: AllowEmptyOption = False,
    idempotency_key: _store.KeyOption = None,
    fence: _store.FenceOption = None,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> _store.ValueChanged:
    """Set a value.

    With --if-version nobody's change is overwritten unseen.
    """
    if value == "-":
        value = read_input("-", ctx.obj.signals, allow_empty=allow_empty).removesuffix("\n")
    parsed = value if as_text else parse_value(value, ctx.obj)
    once = Once(idempotency_key, fence)
    written = _store.opened(ctx, store).state_set(key, parsed, if_version=if_version, expires_ms=expires, once=once)
    return _store.ValueChanged(key, written.version, written.effect, parsed, written.replayed)
