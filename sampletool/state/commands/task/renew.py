"""Make a claim last longer."""

from dataclasses import dataclass

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands._options import (
    A_CLAIM,
    GenerationArgument,
    LeaseOption,
    StoreOption,
    TaskArgument,
    changes_store,
    read_claim,
)
from sampletool.state.commands._values import say_time
from sampletool.state.opening import store_of

spec = changes_store("task renew ann 1 --lease 5m", before=A_CLAIM, idempotent=False)


@dataclass(frozen=True)
class Renewed:
    id: str
    generation: int
    lease_expires_at: str
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.id}:{self.generation} until {self.lease_expires_at}"]


def command(
    ctx: typer.Context,
    task: TaskArgument,
    generation: GenerationArgument = None,
    lease: LeaseOption = "60s",  # type: ignore[assignment]
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Renewed:
    """Make a claim last longer, from now.

    Refused once it is over, even if nobody else has claimed the task.
    """
    context: Context = ctx.obj
    claim = read_claim(task, generation)
    ends_at = store_of(context, store).task_renew(claim.task, claim.generation, lease_ms=lease)
    return Renewed(claim.task, claim.generation, say_time(ends_at), "updated")
