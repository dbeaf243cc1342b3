"""Make a failed task free again."""

from dataclasses import dataclass

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands._options import StoreOption, TaskIdArgument, changes_store
from sampletool.state.errors import TaskNotFailed
from sampletool.state.opening import store_of

spec = changes_store(
    "task retry ann",
    errors=(TaskNotFailed,),
    before=("task add mail 'to: ann' --id ann", "task claim mail --max-attempts 1", "task release ann 1"),
)


@dataclass(frozen=True)
class Retried:
    id: str
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.id}: free again ({self.effect})"]


def command(
    ctx: typer.Context, task: TaskIdArgument, store: StoreOption = None, dry_run: DryRunOption = False
) -> Retried:
    """Make a failed task free again.

    With all its attempts, and in its old place in the queue.
    """
    context: Context = ctx.obj
    return Retried(task, store_of(context, store).task_retry(task))
