"""Every counter, a page at a time."""

from dataclasses import dataclass

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.table import Line, heads
from sampletool.state.commands._options import CursorOption, LimitOption, StoreOption, reads_store
from sampletool.state.commands._values import Counter, page, read_cursor
from sampletool.state.opening import store_of

spec = reads_store("counter list")


@dataclass(frozen=True)
class Counters:
    counters: list[Counter]

    def lines(self) -> list[Line]:
        rows = [(counter.name, str(counter.value)) for counter in self.counters]
        return [heads("counter", "value"), *rows] if rows else ["No counters."]


def command(
    ctx: typer.Context, cursor: CursorOption = None, limit: LimitOption = 100, store: StoreOption = None
) -> Counters:
    """List the counters by name."""
    context: Context = ctx.obj
    found = store_of(context, store).counter_list(read_cursor(cursor), limit + 1)
    rows = page(context, found, limit, lambda row: row[0])
    return Counters([Counter(name, value) for name, value in rows])
