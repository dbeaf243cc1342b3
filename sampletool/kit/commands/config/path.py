"""Which file `config set` would change."""

from dataclasses import dataclass

import typer

from ...context import Context
from ...settings.precedence import project_scope, user_scope
from ._options import GlobalOption, reads_settings

spec = reads_settings("config path --global")


@dataclass(frozen=True)
class Location:
    path: str
    scope: str
    exists: bool

    def lines(self) -> list[str]:
        return [self.path]


def command(ctx: typer.Context, in_user_file: GlobalOption = False) -> Location:
    """Show which file `config set` would change."""
    context: Context = ctx.obj
    workspace = None if in_user_file else context.workspace_or_none
    scope = project_scope(workspace) if workspace else user_scope()
    return Location(str(scope.path), scope.name, scope.path.exists())
