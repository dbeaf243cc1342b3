"""Make a failed task free again."""

from typing import NamedTuple

import typer

from sampletool.kit.contract.answer import Effect
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _options
from sampletool.state.errors import TaskNotFailed
from sampletool.state.opening import store_of

spec = _options.changes_store(
    "task retry ann",
    errors=(TaskNotFailed,),
    before=("task add mail 'to: ann' --id ann", "task claim mail --max-attempts 1", "task release ann 1"),
)


class Retried(NamedTuple):
    id: str
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.id}: free again ({self.effect})"]


def command(
    ctx: typer.Context, task: _options.TaskIdArgument, store: _options.StoreOption = None, dry_run: DryRunOption = False
) -> Retried:
    """Make a failed task free again.

    With all its attempts, and in its old place in the queue.
    """
    return Retried(task, store_of(ctx.obj, store).task_retry(task))
