"""Make a claim last longer."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.commands._store_options import CHANGING, DryRunOption, LeaseOption, StoreOption, say_time
from sampletool.contract.promise import Promise
from sampletool.wiring import Wiring

promise = Promise(effect="store", ends_with=CHANGING, locks=("store",), examples=("tool task renew ann 1 --lease 5m",))


@dataclass(frozen=True)
class Renewed:
    id: str
    generation: int
    lease_expires_at: str
    effect: str

    def lines(self) -> list[str]:
        return [f"{self.id}:{self.generation} until {self.lease_expires_at}"]


def renew_task(wiring: Wiring, task: str, generation: int, lease_ms: int) -> Renewed:
    ends = wiring.store.task_renew(task, generation, lease_ms=lease_ms)
    return Renewed(task, generation, say_time(ends), "updated")


def command(
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK")],
    generation: Annotated[int, typer.Argument(metavar="GENERATION", help="As `task claim` said.")],
    lease: LeaseOption = "60s",  # type: ignore[assignment]
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Renewed:
    """Make a claim last longer, from now; refused once it is over, even if nobody else has claimed the task."""
    return renew_task(ctx.obj, task, generation, lease)
