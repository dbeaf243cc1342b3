"""The tasks of a queue or of all, a page at a time."""

from typing import Annotated, NamedTuple

import typer

from ....kit.contract.response import value_text
from ....kit.contract.table import Line, header_row
from ....kit.pages import AfterOption, LimitOption, first_page, read_number
from ...protocol import Status, TaskState
from .. import _store

spec = _store.reads("task list", "task list mail --status failed")


class Tasks(NamedTuple):
    tasks: list[TaskState]
    left: int | None = None
    """Of the queue that is asked for, whatever the page: how many are neither done nor failed."""
    next_cursor: str | None = None

    def lines(self) -> list[Line]:
        rows = [(one.id, one.queue, one.status, one.claimed_by or "-", value_text(one.body)) for one in self.tasks]
        lines = [header_row("task", "queue", "status", "claimed by", "body"), *rows] if rows else ["No tasks."]
        return [*lines, *([] if self.left is None else [f"{self.left} left"])]


def command(
    ctx: typer.Context,
    queue: Annotated[str | None, typer.Argument(autocompletion=_store.queue_names, help="Only this queue.")] = None,
    status: Annotated[Status | None, typer.Option(help="Only those that are this.")] = None,
    after: AfterOption = None,
    limit: LimitOption = 100,
    store: _store.StoreOption = None,
) -> Tasks:
    """List tasks, oldest first.

    Who holds each, since when, and what became of it.
    """
    opened = _store.opened(ctx, store)
    found = opened.task_list(queue, status, read_number(after), limit + 1)
    page = first_page(found, limit, lambda row: row.position)
    left = None if queue is None else opened.task_left(queue)
    return Tasks(page.rows, left, page.next_cursor)
