"""Cancel a task."""

import typer

from ....kit.global_options import DryRunOption
from ...errors import TaskEnded
from .. import _store

spec = _store.changes(
    "task cancel ann",
    errors=(TaskEnded,),
    before=("task add mail 'to: ann' --id ann",),
)


def command(
    ctx: typer.Context,
    task: _store.TaskIdArgument,
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> _store.TaskChanged:
    """Cancel a task, so that no worker claims it.

    If the command of the task is already running, its worker terminates it the next time it renews
    the lease. This can take up to a third of the lease.
    """
    return _store.TaskChanged(task, _store.connect(ctx, store).task_cancel(task))
