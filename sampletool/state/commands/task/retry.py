"""Make a failed task free again."""

import typer

from ....kit.global_options import DryRunOption
from ...errors import TaskNotFailed
from .. import _store

spec = _store.changes(
    "task retry ann",
    errors=(TaskNotFailed,),
    before=(
        "task add mail 'to: ann' --id ann",
        "task claim mail --max-attempts 1",
        "task release ann:1",
    ),
)


def command(
    ctx: typer.Context,
    task: _store.TaskIdArgument,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> _store.TaskChanged:
    """Make a failed task free again.

    It gets all of its attempts back, and keeps its place in the queue.
    """
    return _store.TaskChanged(task, _store.connect(ctx, store).task_retry(task))
