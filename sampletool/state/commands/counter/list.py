"""Every counter, a page at a time."""

from typing import NamedTuple

import typer

from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page
from .. import _store

spec = _store.reads("counter list")


class Counters(NamedTuple):
    counters: list[_store.Counter]
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        rows = [(counter.name, str(counter.value)) for counter in self.counters]
        return [header_row("counter", "value"), *rows] if rows else ["No counters."]


def command(
    ctx: typer.Context, after: AfterOption = None, limit: LimitOption = 100, store: _store.StoreOption = None
) -> Counters:
    """List the counters by name."""
    found = _store.opened(ctx, store).counter_list(after or "", limit + 1)
    page = first_page(found, limit, lambda row: row[0])
    counters = [_store.Counter(name, value) for name, value in page.rows]
    return Counters(counters, page.next_cursor)
