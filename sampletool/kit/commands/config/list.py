"""Every setting that has a value."""

from typing import NamedTuple

import typer

from ...context import Context
from ...contract.render import value_text
from ...contract.table import Line, heads
from ._options import GlobalOption, RevealOption, Setting, reads_settings, show

spec = reads_settings("config list")


class Listing(NamedTuple):
    settings: list[Setting]
    version: str

    def lines(self) -> list[Line]:
        return [
            heads("key", "value", "source"),
            *((one.key, value_text(one.value), one.source) for one in self.settings),
        ]


def command(ctx: typer.Context, in_user_file: GlobalOption = False, reveal: RevealOption = False) -> Listing:
    """List every key that has a value, and its source."""
    context: Context = ctx.obj
    settings = context.user_settings if in_user_file else context.settings
    return Listing([show(settings, name, reveal=reveal) for name in settings.names()], settings.version)
