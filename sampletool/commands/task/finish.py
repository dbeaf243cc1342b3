"""Finish a claimed task."""

from dataclasses import dataclass
from typing import Annotated

import typer

from sampletool.commands._store_options import CHANGING, DryRunOption, StoreOption
from sampletool.contract.promise import Promise
from sampletool.wiring import Wiring

promise = Promise(effect="store", ends_with=CHANGING, locks=("store",), examples=("tool task finish ann 1",))


@dataclass(frozen=True)
class Finished:
    id: str
    generation: int
    effect: str

    def lines(self) -> list[str]:
        return [f"{self.id}: done ({self.effect})"]


def finish_task(wiring: Wiring, task: str, generation: int) -> Finished:
    return Finished(task, generation, wiring.store.task_finish(task, generation))


def command(
    ctx: typer.Context,
    task: Annotated[str, typer.Argument(metavar="TASK")],
    generation: Annotated[int, typer.Argument(metavar="GENERATION", help="As `task claim` said.")],
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Finished:
    """Mark a task as done, for ever; refused if somebody else has claimed it since. Twice is once."""
    return finish_task(ctx.obj, task, generation)
