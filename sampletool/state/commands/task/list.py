"""The tasks of a queue or of all, a page at a time."""

from typing import Annotated, NamedTuple

import typer

from sampletool.kit.contract.answer import value_text
from sampletool.kit.contract.table import Line, heads
from sampletool.kit.pages import AfterOption, LimitOption, page, read_cursor
from sampletool.state.commands import _store
from sampletool.state.promises import Status, TaskState

spec = _store.reads("task list", "task list mail --status failed")


class Tasks(NamedTuple):
    tasks: list[TaskState]
    left: int | None = None
    """Of the queue that is asked for, whatever the page: how many are neither done nor failed."""

    def lines(self) -> list[Line]:
        rows = [(one.id, one.queue, one.status, one.claimed_by or "-", value_text(one.body)) for one in self.tasks]
        lines = [heads("task", "queue", "status", "claimed by", "body"), *rows] if rows else ["No tasks."]
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
    opened, position = _store.opened(ctx, store), int(read_cursor(after, is_number=True))
    rows = page(ctx.obj, opened.task_list(queue, status, position, limit + 1), limit, lambda row: row.position)
    return Tasks(rows, None if queue is None else opened.task_left(queue))
