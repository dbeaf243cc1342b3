"""Finish a claimed task."""

from typing import NamedTuple

import typer

from sampletool.kit.contract.answer import Effect
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _options
from sampletool.state.opening import store_of

spec = _options.changes_store("task finish ann 1", "task finish ann:1", before=_options.A_CLAIM)


class Finished(NamedTuple):
    id: str
    generation: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.id}: done ({self.effect})"]


def command(
    ctx: typer.Context,
    task: _options.TaskArgument,
    generation: _options.GenerationArgument = None,
    store: _options.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Finished:
    """Mark a claimed task as done.

    Refused if somebody else has claimed it since. Doing it twice changes nothing.
    """
    claim = _options.read_claim(task, generation)
    return Finished(claim.task, claim.generation, store_of(ctx.obj, store).task_finish(claim.task, claim.generation))
