"""List the tasks of one queue or of all queues, one page at a time."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ....kit.contract.response import value_text
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page, read_number
from ...protocol import Status, TaskState
from .. import _store

spec = _store.reads("task list", "task list mail --status failed", "task list --newest --limit 10")


@dataclass(frozen=True)
class Tasks:
    """One page of tasks."""

    tasks: list[TaskState]
    left: int | None = None
    """How many tasks of the queue are neither done nor failed. None without a queue."""

    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        """Return a table, and how many tasks are left."""
        lines: list[Line] = ["No tasks."]
        if self.tasks:
            lines = [header_row("task", "queue", "status", "claimed by", "body")]
        for task in self.tasks:
            claimed_by = task.claimed_by or "-"
            lines.append((task.id, task.queue, task.status, claimed_by, value_text(task.body)))
        if self.left is not None:
            lines.append(f"{self.left} left")
        return lines


def _position(task: TaskState) -> int:
    return task.position


def command(
    ctx: typer.Context,
    queue: Annotated[
        str | None,
        typer.Argument(autocompletion=_store.queue_names, help="List only this queue."),
    ] = None,
    status: Annotated[
        Status | None,
        typer.Option(help="List only tasks with this status."),
    ] = None,
    newest: Annotated[
        bool,
        typer.Option("--newest", help="List the newest tasks first."),
    ] = False,
    after: AfterOption = None,
    limit: LimitOption = 100,
    store: _store.StoreOption = None,
) -> Tasks:
    """List tasks, the oldest first.

    The list shows who holds each task, since when, and how it ended.
    """
    opened = _store.connect(ctx, store)
    # One more than the page has: it shows whether there is another page.
    found = opened.task_list(
        queue,
        status,
        read_number(after),
        limit + 1,
        newest_first=newest,
    )
    page = first_page(found, limit, _position)
    left = None
    if queue is not None:
        left = opened.task_left(queue)
    return Tasks(page.rows, left, page.next_cursor)
