"""Every setting that has a value."""

from dataclasses import replace
from typing import NamedTuple

import typer

from ...context import Context
from ...contract.answer import value_text
from ...contract.errors import InvalidValues
from ...contract.table import Line, heads
from ...pages import AfterOption, LimitOption, page_of
from ...settings.known import find_known
from ._options import GlobalOption, reads_settings, settings_of
from .get import RevealOption, Setting, show

spec = replace(reads_settings, examples=("config list",))


class Listing(NamedTuple):
    settings: list[Setting]
    version: str

    def lines(self) -> list[Line]:
        rows = [(one.key, value_text(one.value), one.source) for one in self.settings]
        return [heads("key", "value", "source"), *rows]


def command(
    ctx: typer.Context,
    in_user_file: GlobalOption = False,
    reveal: RevealOption = False,
    limit: LimitOption = 1000,
    after: AfterOption = None,
) -> Listing:
    """List every key that has a value, and its source.

    A value that the tool cannot use is listed too, with a warning.
    """
    context: Context = ctx.obj
    settings = settings_of(context, in_user_file)
    for name in filter(find_known, settings.names()):
        try:
            settings.value(name)
        except InvalidValues as error:
            context.warn("INVALID_VALUE", error.message)
    names = page_of(context, settings.names(), limit, after, str)
    return Listing([show(settings, name, reveal=reveal) for name in names], settings.version)
