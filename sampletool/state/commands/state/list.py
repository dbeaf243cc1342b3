"""List the values, one page at a time."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ....kit.contract.response import value_text
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page
from ...protocol import Value
from .. import _store

spec = _store.reads("state list", "state list --prefix plan.")


@dataclass(frozen=True)
class Values:
    """One page of values."""

    values: list[Value]
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        """Return a table."""
        if not self.values:
            return ["No values."]
        lines: list[Line] = [header_row("key", "value", "version")]
        for value in self.values:
            lines.append((value.key, value_text(value.value), str(value.version)))
        return lines


def _key(value: Value) -> str:
    return value.key


def command(
    ctx: typer.Context,
    prefix: Annotated[
        str,
        typer.Option(metavar="TEXT", help="List only keys that begin with TEXT."),
    ] = "",
    after: AfterOption = None,
    limit: LimitOption = 100,
    store: _store.StoreOption = None,
) -> Values:
    """List the values, sorted by key."""
    # One more than the page has: it shows whether there is another page.
    found = _store.connect(ctx, store).state_list(prefix, after or "", limit + 1)
    page = first_page(found, limit, _key)
    return Values(page.rows, page.next_cursor)
