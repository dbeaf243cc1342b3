"""List the counters, one page at a time."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ....kit.contract.response import UNTRUSTED
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page
from .. import _store

spec = _store.reads("counter list")


@dataclass(frozen=True)
class ListedCounter:
    """A counter. Another program may have chosen its name."""

    name: Annotated[str, UNTRUSTED]
    value: int


@dataclass(frozen=True)
class Counters:
    """One page of counters."""

    counters: list[ListedCounter]
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        """Return a table."""
        if not self.counters:
            return ["No counters."]
        lines: list[Line] = [header_row("counter", "value")]
        for counter in self.counters:
            lines.append((counter.name, str(counter.value)))
        return lines


def _name(counter: tuple[str, int]) -> str:
    name, _value = counter
    return name


def command(
    ctx: typer.Context,
    after: AfterOption = None,
    limit: LimitOption = 100,
    store: _store.StoreOption = None,
) -> Counters:
    """List the counters, sorted by name."""
    # One more than the page has: it shows whether there is another page.
    names_and_values = _store.connect(ctx, store).counter_list(after or "", limit + 1)
    page = first_page(names_and_values, limit, _name)
    counters = [ListedCounter(name, value) for name, value in page.rows]
    return Counters(counters, page.next_cursor)
