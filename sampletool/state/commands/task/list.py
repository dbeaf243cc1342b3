"""List the tasks of one queue or of all queues, one page at a time."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ....kit.contract.excerpt import excerpt, excerpt_text
from ....kit.contract.response import UNTRUSTED
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page, read_number
from ...protocol import Status, TaskState
from .. import _store

spec = _store.reads("task list", "task list mail --status failed", "task list --newest --limit 10")


@dataclass(frozen=True)
class ListedTask:
    """A task, with at most 200 characters of its body."""

    id: Annotated[str, UNTRUSTED]
    queue: Annotated[str, UNTRUSTED]
    status: Status
    generation: int
    attempts: int
    body: Annotated[Any, UNTRUSTED]
    """The body. Of one with more than 200 characters, this is the start of its text."""

    body_length: int | None
    """The number of characters of a body that is not shown whole."""

    claimed_by: Annotated[str | None, UNTRUSTED]
    claimed_at: str | None
    lease_expires_at: str | None
    free_at: str | None
    """When the task may be claimed. None if that is now, or if it is not free."""

    position: int
    """The place of the task in the order in which tasks were added."""


@dataclass(frozen=True)
class Tasks:
    """One page of tasks."""

    tasks: list[ListedTask]
    left: int | None = None
    """How many tasks of the queue are neither done nor failed.

    None without a queue. Also None with a status: counting takes the longer, the more tasks there
    are, and finding some tasks with a status does not.
    """

    next_cursor: str | None = None

    @property
    def truncated(self) -> bool:
        """Whether a body is not shown whole."""
        return any(task.body_length is not None for task in self.tasks)

    def lines(self) -> list[Line]:
        """Return a table, and how many tasks are left."""
        lines: list[Line] = ["No tasks."]
        if self.tasks:
            lines = [header_row("task", "queue", "status", "claimed by", "body")]
        for task in self.tasks:
            claimed_by = task.claimed_by or "-"
            body = excerpt_text(task.body, task.body_length)
            lines.append((task.id, task.queue, task.status, claimed_by, body))
        if self.left is not None:
            lines.append(f"{self.left} left")
        return lines


def _to_listed_task(task: TaskState) -> ListedTask:
    body_excerpt = excerpt(task.body)
    return ListedTask(
        id=task.id,
        queue=task.queue,
        status=task.status,
        generation=task.generation,
        attempts=task.attempts,
        body=body_excerpt.value,
        body_length=body_excerpt.length,
        claimed_by=task.claimed_by,
        claimed_at=task.claimed_at,
        lease_expires_at=task.lease_expires_at,
        free_at=task.free_at,
        position=task.position,
    )


def _position(task: ListedTask) -> int:
    return task.position


def command(
    ctx: typer.Context,
    queue: Annotated[
        str | None,
        typer.Argument(
            autocompletion=_store.queue_names, help="List only the tasks in this queue."
        ),
    ] = None,
    status: Annotated[
        Status | None,
        typer.Option(help="List only tasks with this status."),
    ] = None,
    newest: Annotated[
        bool,
        typer.Option("--newest", help="Start with the newest tasks."),
    ] = False,
    after: AfterOption = None,
    limit: LimitOption = 100,
    store: _store.StoreOption = None,
) -> Tasks:
    """List tasks, oldest first.

    The list shows the status of each task, and which worker has claimed it. Bodies longer than 200
    characters are cut off. To see a whole body, use `task show`.
    """
    opened_store = _store.connect(ctx, store)
    # One more than the page has: it shows whether there is another page.
    tasks = opened_store.task_list(
        queue,
        status,
        read_number(after),
        limit + 1,
        newest_first=newest,
    )
    listed_tasks = [_to_listed_task(task) for task in tasks]
    page = first_page(listed_tasks, limit, _position)
    left = None
    if queue is not None and status is None:
        left = opened_store.task_left(queue)
    return Tasks(page.rows, left, page.next_cursor)
