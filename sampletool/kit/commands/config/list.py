"""Every setting that has a value."""

from typing import NamedTuple

import typer

from ...context import Context
from ...contract.render import value_text
from ...contract.table import Line, heads
from ...settings.precedence import Settings
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


def list_settings(settings: Settings, *, reveal: bool) -> Listing:
    found = [show(settings, name, reveal=reveal) for name in settings.names()]
    return Listing(found, settings.version)


def command(ctx: typer.Context, in_user_file: GlobalOption = False, reveal: RevealOption = False) -> Listing:
    """List every key that has a value, and its source."""
    context: Context = ctx.obj
    return list_settings(context.user_settings if in_user_file else context.settings, reveal=reveal)
