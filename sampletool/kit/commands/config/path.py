"""Which file `config set` would change."""

from typing import NamedTuple

import typer

from ...context import Context
from ._options import GlobalOption, reads_settings, scope_of

spec = reads_settings("config path --global")


class Location(NamedTuple):
    path: str
    scope: str
    exists: bool

    def lines(self) -> list[str]:
        return [self.path]


def command(ctx: typer.Context, in_user_file: GlobalOption = False) -> Location:
    """Show which file `config set` would change."""
    context: Context = ctx.obj
    scope = scope_of(context, in_user_file)
    return Location(str(scope.path), scope.name, scope.path.exists())
