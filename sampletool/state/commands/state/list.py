"""List the values, one page at a time."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ....kit.contract.excerpt import excerpt, excerpt_text
from ....kit.contract.response import UNTRUSTED
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page
from ...protocol import Value
from .. import _store

spec = _store.reads("state list", "state list --prefix plan.")


@dataclass(frozen=True)
class ListedValue:
    """A value and its version, with at most 200 characters of the value."""

    key: Annotated[str, UNTRUSTED]
    value: Annotated[Any, UNTRUSTED]
    """The value. Of one with more than 200 characters, this is the start of its text."""

    length: int | None
    """The number of characters of a value that is not shown whole."""

    version: int
    expires_at: str | None


@dataclass(frozen=True)
class Values:
    """One page of values."""

    values: list[ListedValue]
    next_cursor: str | None = None

    @property
    def truncated(self) -> bool:
        """Whether a value is not shown whole."""
        return any(value.length is not None for value in self.values)

    def lines(self) -> list[Line]:
        """Return a table."""
        if not self.values:
            return ["No values."]
        lines: list[Line] = [header_row("key", "value", "version")]
        for value in self.values:
            text = excerpt_text(value.value, value.length)
            lines.append((value.key, text, str(value.version)))
        return lines


def _to_listed_value(value: Value) -> ListedValue:
    value_excerpt = excerpt(value.value)
    return ListedValue(
        key=value.key,
        value=value_excerpt.value,
        length=value_excerpt.length,
        version=value.version,
        expires_at=value.expires_at,
    )


def _key(value: ListedValue) -> str:
    return value.key


def command(
    ctx: typer.Context,
    prefix: Annotated[
        str,
        typer.Option(metavar="TEXT", help="List only keys that start with TEXT."),
    ] = "",
    after: AfterOption = None,
    limit: LimitOption = 100,
    store: _store.StoreOption = None,
) -> Values:
    """List the values, sorted by key.

    Values longer than 200 characters are cut off. To see a whole value, use `state get`.
    """
    # One more than the page has: it shows whether there is another page.
    values = _store.connect(ctx, store).state_list(prefix, after or "", limit + 1)
    listed_values = [_to_listed_value(value) for value in values]
    page = first_page(listed_values, limit, _key)
    return Values(page.rows, page.next_cursor)
