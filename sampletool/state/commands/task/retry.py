"""Make failed tasks free again."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ....kit.contract.errors import InvalidValues, Mistake
from ....kit.contract.response import Effect
from ....kit.global_options import DryRunOption
from ...errors import TaskNotFailed
from ...store import Store
from .. import _store

spec = _store.changes(
    "task retry ann",
    "task retry --all mail",
    errors=(TaskNotFailed,),
    before=(
        "task add mail 'to: ann' --id ann",
        "task claim mail --max-attempts 1",
        "task release ann:1",
    ),
)

_TASK_HELP = "ID of a failed task. `task list --status failed` lists them."

_TASKS_AT_ONCE = 500
"""How many tasks one step frees. More would keep other commands waiting."""


@dataclass(frozen=True)
class Retried:
    """How many tasks are tried again."""

    retried: int
    effect: Effect
    id: str | None = None
    """The id of the task. None if the command was about all tasks of a queue."""

    def lines(self) -> list[str]:
        """Return the number."""
        return [f"{self.retried} free again"]


def command(
    ctx: typer.Context,
    task: Annotated[
        str | None,
        typer.Argument(metavar="[TASK]", callback=_store.CHECK_NAME, help=_TASK_HELP),
    ] = None,
    all_of: Annotated[
        str | None,
        typer.Option(
            "--all",
            metavar="QUEUE",
            callback=_store.CHECK_NAME,
            help="Put back all failed tasks in QUEUE.",
        ),
    ] = None,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Retried:
    """Put failed tasks back in their queue.

    A task returns to its old position, and its attempts are counted from zero again. Give the ID of
    one task, or use --all for all failed tasks in a queue.
    """
    if (task is None) == (all_of is None):
        problem = "pass the ID of a task, or --all QUEUE"
        raise InvalidValues(Mistake("TASK", "INVALID_VALUE", problem))
    opened_store = _store.connect(ctx, store)
    if task is not None:
        effect = opened_store.task_retry(task)
        return Retried(1 if effect == "updated" else 0, effect, task)
    retried_count = _retry_all(ctx, opened_store, str(all_of), dry_run=dry_run)
    return Retried(retried_count, "updated" if retried_count else "unchanged")


def _retry_all(ctx: typer.Context, opened_store: Store, queue: str, *, dry_run: bool) -> int:
    """Free all failed tasks of a queue, in steps. Return how many there were."""
    if dry_run:
        # A step that changes nothing would find the same tasks again and again.
        (stats,) = opened_store.task_stats(queue)
        return stats.failed
    retried_count = 0
    while True:
        ctx.obj.signals.check()
        freed_count = opened_store.task_retry_all(queue, _TASKS_AT_ONCE)
        retried_count += freed_count
        if freed_count == 0:
            return retried_count
