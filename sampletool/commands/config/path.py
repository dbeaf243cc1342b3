"""Which file `config set` would change."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.promise import Promise
from sampletool.settings import project_scope, user_scope
from sampletool.wiring import Wiring

promise = Promise(
    effect="nothing", ends_with=(ExitStatus.NOT_FOUND, ExitStatus.PERMISSION), examples=("tool config path --global",)
)


@dataclass(frozen=True)
class Location:
    path: str
    scope: str
    exists: bool

    def lines(self) -> list[str]:
        return [self.path]


def command(
    ctx: typer.Context,
    in_user_file: Annotated[bool, typer.Option("--global", help="Your own settings, also inside a workspace.")] = False,
) -> Location:
    """Show which file `tool config set` would change here."""
    wiring: Wiring = ctx.obj
    workspace = None if in_user_file else wiring.workspace_or_none
    scope = project_scope(workspace) if workspace else user_scope()
    return Location(str(scope.path), scope.name, scope.path.exists())
