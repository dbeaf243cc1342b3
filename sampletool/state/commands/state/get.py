"""Show a value, and the version that is needed to change it."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ....kit.contract.errors import KeyNotFound
from ....kit.contract.excerpt import excerpt, excerpt_text
from ....kit.contract.response import UNTRUSTED
from ....kit.global_options import MaxCharsOption, RawOption
from .. import _store

spec = _store.reads(
    "state get plan",
    "state get plan --max-chars 1000",
    errors=(KeyNotFound,),
    before=("state set plan draft",),
)


@dataclass(frozen=True)
class ShownValue:
    """A value and its version."""

    key: str
    value: Annotated[Any, UNTRUSTED]
    version: int
    """Pass it to --if-version."""

    expires_at: str | None
    length: int | None
    """The number of characters of a value that --max-chars has shortened."""

    @property
    def truncated(self) -> bool:
        """Whether the value is not shown whole."""
        return self.length is not None

    def lines(self) -> list[str]:
        """Return the value as one line."""
        return [excerpt_text(self.value, self.length)]


def command(
    ctx: typer.Context,
    key: _store.ValueKeyArgument,
    store: _store.StoreOption = None,
    # The kit reads --raw from the command line, and prints the response accordingly.
    raw: RawOption = False,
    max_chars: MaxCharsOption = None,
) -> ShownValue:
    """Show a value and its version."""
    stored_value = _store.connect(ctx, store).state_get(key)
    value_excerpt = excerpt(stored_value.value, max_chars)
    return ShownValue(
        key=stored_value.key,
        value=value_excerpt.value,
        version=stored_value.version,
        expires_at=stored_value.expires_at,
        length=value_excerpt.length,
    )
