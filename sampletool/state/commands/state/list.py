"""Every value, a page at a time."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.render import value_text
from sampletool.kit.contract.table import Line, heads
from sampletool.state.commands._options import CursorOption, LimitOption, StoreOption, reads_store
from sampletool.state.commands._values import Value, page, read_cursor, told
from sampletool.state.opening import store_of

spec = reads_store("state list", "state list --prefix plan.")


@dataclass(frozen=True)
class Values:
    values: list[Value]

    def lines(self) -> list[Line]:
        rows = [(value.key, value_text(value.value), str(value.version)) for value in self.values]
        return [heads("key", "value", "version"), *rows] if rows else ["No values."]


def command(
    ctx: typer.Context,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only keys that begin with this.")] = "",
    cursor: CursorOption = None,
    limit: LimitOption = 100,
    store: StoreOption = None,
) -> Values:
    """List the values by key."""
    context: Context = ctx.obj
    found = store_of(context, store).state_list(prefix, read_cursor(cursor), limit + 1)
    rows = page(context, found, limit, lambda row: row.key)
    return Values([told(row) for row in rows])
