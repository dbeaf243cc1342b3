"""Every value, a page at a time."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.commands._store_options import CursorOption, LimitOption, StoreOption, reads_store
from sampletool.commands._store_values import Value, page, read_cursor, told
from sampletool.contract.render import value_text
from sampletool.wiring import Wiring

promise = reads_store("tool state list", "tool state list --prefix plan.")


@dataclass(frozen=True)
class Values:
    values: list[Value]

    def lines(self) -> list[str]:
        return [f"{value.key} = {value_text(value.value)}  (version {value.version})" for value in self.values] or [
            "No values."
        ]


def command(
    ctx: typer.Context,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only keys that begin with this.")] = "",
    cursor: CursorOption = None,
    limit: LimitOption = 100,
    store: StoreOption = None,
) -> Values:
    """List the values by key."""
    wiring: Wiring = ctx.obj
    rows = page(wiring, wiring.store.state_list(prefix, read_cursor(cursor), limit + 1), limit, lambda row: row.key)
    return Values([told(row) for row in rows])
