"""Every value, a page at a time."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sampletool.commands._store_options import READING, CursorOption, LimitOption, StoreOption, say_time
from sampletool.contract.promise import Promise
from sampletool.contract.render import value_text
from sampletool.wiring import Wiring

promise = Promise(effect="nothing", ends_with=READING, examples=("tool state list", "tool state list --prefix plan."))


@dataclass(frozen=True)
class Value:
    key: str
    value: Any
    version: int
    expires_at: str | None = None


@dataclass(frozen=True)
class Values:
    values: list[Value]

    def lines(self) -> list[str]:
        return [f"{value.key} = {value_text(value.value)}  (version {value.version})" for value in self.values]


def list_values(wiring: Wiring, prefix: str, after: str, limit: int) -> Values:
    found = wiring.store.state_list(prefix, after, limit + 1)
    if len(found) > limit:
        wiring.meta["next_cursor"] = found[limit - 1].key
    return Values(
        [
            Value(
                value.key, value.value, value.version, None if value.expires_at is None else say_time(value.expires_at)
            )
            for value in found[:limit]
        ]
    )


def command(
    ctx: typer.Context,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only keys that begin with it.")] = "",
    cursor: CursorOption = "",
    limit: LimitOption = 100,
    store: StoreOption = None,
) -> Values:
    """List the values in the order of their keys."""
    return list_values(ctx.obj, prefix, cursor, limit)
