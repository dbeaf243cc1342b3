"""The tasks of a queue or of all, a page at a time, and how many there are of each kind."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from sampletool.commands._store_options import READING, LimitOption, StoreOption, say_time
from sampletool.contract.promise import Promise
from sampletool.contract.render import value_text
from sampletool.state.promises import TaskState
from sampletool.wiring import Wiring

promise = Promise(
    effect="nothing", ends_with=READING, examples=("tool task list", "tool task list mail --status failed")
)

Status = Literal["free", "claimed", "expired", "done", "failed"]


@dataclass(frozen=True)
class Task:
    id: str
    queue: str
    status: str
    generation: int
    attempts: int
    body: Any
    claimed_by: str | None = None
    claimed_at: str | None = None
    lease_expires_at: str | None = None
    free_at: str | None = None


@dataclass(frozen=True)
class Tasks:
    tasks: list[Task]
    counts: dict[str, int]
    """Of the whole queue, whatever the page."""

    def lines(self) -> list[str]:
        told = [
            f"{task.id}  {task.queue}  {task.status}{f' by {task.claimed_by}' if task.claimed_by else ''}"
            f"  {value_text(task.body)}"
            for task in self.tasks
        ]
        return [*told, ", ".join(f"{number} {status}" for status, number in self.counts.items()) or "No tasks."]


def list_tasks(wiring: Wiring, queue: str | None, status: str | None, after: int, limit: int) -> Tasks:
    found = wiring.store.task_list(queue, status, after, limit + 1)
    if len(found) > limit:
        wiring.meta["next_cursor"] = str(found[limit - 1].position)
    counts = wiring.store.task_count(queue)
    return Tasks([_shown(task) for task in found[:limit]], dict(sorted(counts.items())))


def _shown(task: TaskState) -> Task:
    claimed_at, due_at = (at and say_time(at) for at in (task.claimed_at, task.due_at))
    is_leased = task.claimed_by is not None
    return Task(
        task.id,
        task.queue,
        task.status,
        task.generation,
        task.attempts,
        task.body,
        task.claimed_by,
        claimed_at or None,
        due_at if due_at and is_leased else None,
        due_at if due_at and not is_leased else None,
    )


def command(
    ctx: typer.Context,
    queue: Annotated[str | None, typer.Argument(metavar="[QUEUE]", help="Of all queues if left out.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only these.")] = None,
    cursor: Annotated[
        int, typer.Option("--cursor", min=0, metavar="CURSOR", help="Go on behind a page: its meta.next_cursor.")
    ] = 0,
    limit: LimitOption = 100,
    store: StoreOption = None,
) -> Tasks:
    """List tasks in the order of adding: who holds each, since when, and what became of it."""
    return list_tasks(ctx.obj, queue, status, cursor, limit)
