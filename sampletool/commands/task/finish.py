"""Finish a claimed task."""

from dataclasses import dataclass

import typer

from sampletool.commands._store_options import GenerationArgument, StoreOption, TaskArgument, changes_store, read_claim
from sampletool.contract.answer import Effect
from sampletool.options import DryRunOption
from sampletool.wiring import Wiring

promise = changes_store("tool task finish ann 1", "tool task finish ann:1")


@dataclass(frozen=True)
class Finished:
    id: str
    generation: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.id}: done ({self.effect})"]


def command(
    ctx: typer.Context,
    task: TaskArgument,
    generation: GenerationArgument = None,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Finished:
    """Mark a claimed task as done.

    Refused if somebody else has claimed it since. Doing it twice changes nothing.
    """
    wiring: Wiring = ctx.obj
    claim = read_claim(task, generation)
    return Finished(claim.task, claim.generation, wiring.store.task_finish(claim.task, claim.generation))
