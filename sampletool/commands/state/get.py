"""A value, and the version to change it with."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sampletool.commands._store_options import READING, StoreOption, say_time
from sampletool.contract.promise import Promise
from sampletool.contract.render import value_text
from sampletool.wiring import Wiring

promise = Promise(effect="nothing", ends_with=READING, examples=("tool state get plan",))


@dataclass(frozen=True)
class Value:
    key: str
    value: Any
    version: int
    """Pass it to --if-version."""
    expires_at: str | None = None

    def lines(self) -> list[str]:
        return [value_text(self.value)]


def get_value(wiring: Wiring, key: str) -> Value:
    found = wiring.store.state_get(key)
    expires = None if found.expires_at is None else say_time(found.expires_at)
    return Value(key, found.value, found.version, expires)


def command(ctx: typer.Context, key: Annotated[str, typer.Argument(metavar="KEY")], store: StoreOption = None) -> Value:
    """Show a value and its version, as they were at one moment."""
    return get_value(ctx.obj, key)
