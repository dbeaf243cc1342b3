"""Finish a claimed task."""

import typer

from sampletool.kit.context import Context
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands._options import (
    A_CLAIM,
    GenerationArgument,
    StoreOption,
    TaskArgument,
    changes_store,
    read_claim,
)
from sampletool.state.commands._values import Settled
from sampletool.state.opening import store_of

spec = changes_store("task finish ann 1", "task finish ann:1", before=A_CLAIM)


class Finished(Settled):
    now = "done"


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
    context: Context = ctx.obj
    claim = read_claim(task, generation)
    return Finished(claim.task, claim.generation, store_of(context, store).task_finish(claim.task, claim.generation))
