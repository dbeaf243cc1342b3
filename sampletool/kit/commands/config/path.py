"""Which file `config set` would change."""

from dataclasses import replace
from typing import NamedTuple

import typer

from ...settings.precedence import ScopeName
from ._options import GlobalOption, reads_settings, settings_of

spec = replace(reads_settings, examples=("config path --global",))


class Location(NamedTuple):
    path: str
    scope: ScopeName
    exists: bool

    def lines(self) -> list[str]:
        return [self.path]


def command(ctx: typer.Context, in_user_file: GlobalOption = False) -> Location:
    """Show which file `config set` would change."""
    scope = settings_of(ctx.obj, in_user_file).scopes[0]
    return Location(str(scope.path), scope.name, scope.path.exists())
