"""The tasks of a queue or of all, a page at a time, and how many there are of each kind."""

from typing import Annotated, Any, Literal, NamedTuple, get_args

import typer

from sampletool.kit.contract.answer import UNTRUSTED
from sampletool.kit.contract.render import value_text
from sampletool.kit.contract.table import Line, heads
from sampletool.kit.pages import AfterOption, LimitOption, page, read_cursor
from sampletool.state.commands import _options
from sampletool.state.commands._values import say_time
from sampletool.state.opening import store_of
from sampletool.state.promises import TaskState

spec = _options.reads_store("task list", "task list mail --status failed")

Status = Literal["free", "claimed", "expired", "done", "failed"]


class Task(NamedTuple):
    id: str
    queue: str
    status: Annotated[str, {"enum": get_args(Status)}]
    generation: int
    attempts: int
    body: Annotated[Any, UNTRUSTED]
    claimed_by: str | None = None
    claimed_at: str | None = None
    lease_expires_at: str | None = None
    free_at: str | None = None


class Tasks(NamedTuple):
    tasks: list[Task]
    counts: dict[str, int]
    """Of the whole queue, whatever the page."""

    def lines(self) -> list[Line]:
        rows: list[Line] = [
            (task.id, task.queue, task.status, task.claimed_by or "-", value_text(task.body)) for task in self.tasks
        ]
        told = [heads("task", "queue", "status", "claimed by", "body"), *rows] if rows else []
        return [*told, ", ".join(f"{number} {status}" for status, number in self.counts.items()) or "No tasks."]


def _shown(task: TaskState) -> Task:
    claimed_at, due_at = (say_time(at) if at else None for at in (task.claimed_at, task.due_at))
    is_leased = task.claimed_by is not None
    return Task(*task[:5], task.body, task.claimed_by, claimed_at, *((due_at, None) if is_leased else (None, due_at)))


def command(
    ctx: typer.Context,
    queue: Annotated[
        str | None, typer.Argument(metavar="[QUEUE]", autocompletion=_options.queue_names, help="Only this queue.")
    ] = None,
    status: Annotated[
        Status | None,
        typer.Option("--status", metavar="STATUS", help="Only free, claimed, expired, done or failed ones."),
    ] = None,
    after: AfterOption = None,
    limit: LimitOption = 100,
    store: _options.StoreOption = None,
) -> Tasks:
    """List tasks, oldest first.

    Who holds each, since when, and what became of it.
    """
    opened, position = store_of(ctx.obj, store), int(read_cursor(after, is_number=True))
    found = opened.task_list(queue, status, position, limit + 1)
    rows = page(ctx.obj, found, limit, lambda row: row.position)
    return Tasks([_shown(row) for row in rows], dict(sorted(opened.task_count(queue).items())))
