"""Show which file `config set` would change."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ...contract.command_spec import CommandSpec
from ...settings.precedence import ScopeName
from ._options import settings_of

spec = CommandSpec(
    effect="nothing",
    reads=("settings",),
    examples=("config path", "config path --global"),
)


@dataclass(frozen=True)
class Location:
    """A settings file, which may not exist yet."""

    path: str
    scope: ScopeName
    exists: bool

    def lines(self) -> list[str]:
        """Return the path."""
        return [self.path]


def command(
    ctx: typer.Context,
    in_user_file: Annotated[
        bool,
        typer.Option("--global", help="Show the path of your personal settings file."),
    ] = False,
) -> Location:
    """Show the path of the file that `config set` would change."""
    scope = settings_of(ctx.obj, in_user_file).scopes[0]
    return Location(path=str(scope.path), scope=scope.name, exists=scope.path.exists())
