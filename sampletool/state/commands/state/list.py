"""Every value, a page at a time."""

from typing import Annotated, NamedTuple

import typer

from ....kit.contract.response import value_text
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page
from ...protocol import Value
from .. import _store

spec = _store.reads("state list", "state list --prefix plan.")


class Values(NamedTuple):
    values: list[Value]
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        rows = [(value.key, value_text(value.value), str(value.version)) for value in self.values]
        return [header_row("key", "value", "version"), *rows] if rows else ["No values."]


def command(
    ctx: typer.Context,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Only keys that begin with this.")] = "",
    after: AfterOption = None,
    limit: LimitOption = 100,
    store: _store.StoreOption = None,
) -> Values:
    """List the values by key."""
    found = _store.opened(ctx, store).state_list(prefix, after or "", limit + 1)
    page = first_page(found, limit, lambda row: row.key)
    return Values(page.rows, page.next_cursor)
