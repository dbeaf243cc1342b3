"""Set a value: always, only over the version that was read, or only if there is none."""

from typing import Annotated, Any

import typer

from ....kit.contract.errors import KeyNotFound, VersionConflict
from ....kit.global_options import AllowEmptyOption, DryRunOption
from ...protocol import Once, Written
from ...store import Store
from .. import _store
from .._values import parse_value, read_input

spec = _store.changes(
    "state set plan draft",
    "state set plan final --if-version 1",
    "state set leader agent-1 --if-version 0 --expires 60s",
    errors=(VersionConflict,),
    stdin_arguments=("value",),
    idempotent=False,
    destroys="The value that the key had. With --if-version, only one that you have read.",
)


def _first_value(opened: Store, key: str, written: Written) -> Any:
    """Return the value of an earlier write that was replayed: it can differ from this command's.

    Return None if it has been replaced or removed since.
    """
    try:
        found = opened.state_get(key)
    except KeyNotFound:
        return None
    return found.value if found.version == written.version else None


def command(
    ctx: typer.Context,
    key: _store.ValueKeyArgument,
    value: Annotated[
        str,
        typer.Argument(
            metavar="VALUE",
            callback=_store.CHECK_TEXT,
            help=(
                "Value to store. Valid JSON is stored as JSON, and anything else as text. "
                "Use `-` to read the value from stdin."
            ),
        ),
    ],
    if_version: _store.IfVersionOption = None,
    expires: Annotated[
        int | None,
        _store.duration_option("Delete the value after this time, for example 60s."),
    ] = None,
    as_text: Annotated[
        bool,
        typer.Option("--string", help="Store VALUE as text, even if it is valid JSON."),
    ] = False,
    allow_empty: AllowEmptyOption = False,
    idempotency_key: _store.KeyOption = None,
    fence: _store.FenceOption = None,
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> _store.ValueChanged:
    """Store a value that other processes can read.

    This overwrites the existing value of the key. To avoid overwriting a change that you have not
    seen, pass the version that you have read with --if-version.
    """
    if value == "-":
        text = read_input("-", ctx.obj.signals, allow_empty=allow_empty).removesuffix("\n")
    else:
        text = value
    parsed = text if as_text else parse_value(text, ctx.obj)
    opened = _store.connect(ctx, store)
    written = opened.state_set(
        key,
        parsed,
        if_version=if_version,
        expires_ms=expires,
        once=Once(idempotency_key, fence),
    )
    return _store.ValueChanged(
        key=key,
        version=written.version,
        effect=written.effect,
        value=_first_value(opened, key, written) if written.replayed else parsed,
        replayed=written.replayed,
    )
