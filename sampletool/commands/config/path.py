"""Which file `config set` would change."""

from dataclasses import dataclass

import typer

from sampletool.commands._settings_options import GlobalOption, reads_settings
from sampletool.settings import project_scope, user_scope
from sampletool.wiring import Wiring

promise = reads_settings("tool config path --global")


@dataclass(frozen=True)
class Location:
    path: str
    scope: str
    exists: bool

    def lines(self) -> list[str]:
        return [self.path]


def command(ctx: typer.Context, in_user_file: GlobalOption = False) -> Location:
    """Show which file `tool config set` would change."""
    wiring: Wiring = ctx.obj
    workspace = None if in_user_file else wiring.workspace_or_none
    scope = project_scope(workspace) if workspace else user_scope()
    return Location(str(scope.path), scope.name, scope.path.exists())
