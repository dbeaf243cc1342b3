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
    found = _store.connect(ctx, store).state_get(key)
    shown = excerpt(found.value, max_chars)
    return ShownValue(
        key=found.key,
        value=shown.value,
        version=found.version,
        expires_at=found.expires_at,
        length=shown.length,
    )
