"""Cancel one or more tasks."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ....kit.contract.errors import ToolError
from ....kit.contract.expected import EXPECTED, to_tool_error
from ....kit.contract.response import Effect
from ....kit.contract.text import quoted
from ....kit.global_options import DryRunOption
from ...errors import NotAllCancelled, TaskEnded, TaskNotFound
from ...store import Store
from ...values import check_arguments
from .. import _store

spec = _store.changes(
    "task cancel ann",
    "task cancel bob cid",
    errors=(TaskEnded, NotAllCancelled),
    before=("task add mail 'to: ann' 'to: bob' 'to: cid' --id ann --id bob --id cid",),
)


@dataclass(frozen=True)
class CancelledTask:
    """What happened to one of the tasks."""

    id: str
    ok: bool
    effect: Effect | None = None
    """None if the task could not be cancelled."""

    code: str | None = None
    """The code of the error, if the task could not be cancelled."""


@dataclass(frozen=True)
class Cancelled:
    """What happened to each task."""

    tasks: list[CancelledTask]
    effect: Effect

    def lines(self) -> list[str]:
        """Return a line for each task."""
        return [f"{task.id} {task.effect or task.code}" for task in self.tasks]


def _cancel_all(store: Store, ids: list[str]) -> tuple[Cancelled, list[ToolError]]:
    """Cancel each task. Return what happened to each, and why some could not be cancelled.

    If the store fails before the end, raise its error with what happened to the tasks before.
    """
    tasks: list[CancelledTask] = []
    failures: list[ToolError] = []
    # An id that is given twice means one task.
    for task_id in dict.fromkeys(ids):
        try:
            effect = store.task_cancel(task_id)
        except (TaskEnded, TaskNotFound) as error:
            failures.append(error)
            tasks.append(CancelledTask(task_id, ok=False, code=error.code))
        except EXPECTED as error:
            failure = to_tool_error(error)
            if tasks:
                # The error speaks of this task only: it may say that nothing was changed.
                hint = f"The tasks before {quoted(task_id)} were handled. {failure.suggestion}"
                failure = failure.with_data(_summarize(tasks)).with_hint(hint)
            raise failure from error
        else:
            tasks.append(CancelledTask(task_id, ok=True, effect=effect))
    return _summarize(tasks), failures


def _summarize(tasks: list[CancelledTask]) -> Cancelled:
    """Return the result for these tasks. Its effect is "updated" if at least one was cancelled."""
    has_cancelled = any(task.effect == "updated" for task in tasks)
    effect_of_all: Effect = "updated" if has_cancelled else "unchanged"
    return Cancelled(tasks, effect_of_all)


def command(
    ctx: typer.Context,
    tasks: Annotated[
        list[str],
        typer.Argument(metavar="TASK...", callback=_store.CHECK_NAME, help="IDs of the tasks."),
    ],
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> Cancelled:
    """Cancel tasks, so that no worker claims them.

    If one of them cannot be cancelled, the others are cancelled anyway, and the exit code is 3. If
    the command of a task is already running, its worker terminates it the next time it renews
    the lease. This can take up to a third of the lease.
    """
    # Check all of them before the first one is cancelled.
    for task_id in tasks:
        check_arguments({"task": task_id})
    cancelled, failures = _cancel_all(_store.connect(ctx, store), tasks)
    failed = [task.id for task in cancelled.tasks if not task.ok]
    if failed and len(failed) < len(cancelled.tasks):
        raise NotAllCancelled(failed=failed).with_data(cancelled)
    if failures:
        # Nothing was done, so the first reason tells more.
        raise failures[0].with_data(cancelled)
    return cancelled
