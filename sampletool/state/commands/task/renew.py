"""Make a claim last longer."""

from typing import NamedTuple

import typer

from sampletool.kit.contract.answer import Effect
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _options
from sampletool.state.opening import store_of

spec = _options.changes_store("task renew ann 1 --lease 5m", before=_options.A_CLAIM, idempotent=False)


class Renewed(NamedTuple):
    id: str
    generation: int
    lease_expires_at: str
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.id}:{self.generation} until {self.lease_expires_at}"]


def command(
    ctx: typer.Context,
    task: _options.TaskArgument,
    generation: _options.GenerationArgument = None,
    lease: _options.LeaseOption = "60s",  # type: ignore[assignment]
    store: _options.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Renewed:
    """Make a claim last longer, from now.

    Refused once it is over, even if nobody else has claimed the task.
    """
    claim = _options.read_claim(task, generation)
    return Renewed(*claim, store_of(ctx.obj, store).task_renew(*claim, lease_ms=lease), "updated")
