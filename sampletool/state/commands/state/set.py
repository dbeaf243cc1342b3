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


def _value_of_earlier_write(opened_store: Store, key: str, earlier_write: Written) -> Any:
    """Return the value that an earlier command has set. Return None if it was changed since.

    An earlier command with the same idempotency key or fence can have set another value than this
    command, which then changes nothing.
    """
    try:
        stored_value = opened_store.state_get(key)
    except KeyNotFound:
        return None
    if stored_value.version != earlier_write.version:
        return None
    return stored_value.value


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
    new_value = text if as_text else parse_value(text, ctx.obj)
    opened_store = _store.connect(ctx, store)
    written = opened_store.state_set(
        key,
        new_value,
        if_version=if_version,
        expires_ms=expires,
        once=Once(idempotency_key, fence),
    )
    current_value = new_value
    if written.replayed:
        current_value = _value_of_earlier_write(opened_store, key, written)
    return _store.ValueChanged(
        key=key,
        version=written.version,
        effect=written.effect,
        value=current_value,
        replayed=written.replayed,
    )
