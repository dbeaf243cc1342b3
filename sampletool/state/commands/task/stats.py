"""Count the tasks of each status."""

from dataclasses import dataclass
from typing import Annotated

import typer

from ....kit.contract.table import Line, header_row
from ...protocol import QueueStats
from .. import _store

spec = _store.reads("task stats", "task stats mail")


@dataclass(frozen=True)
class Stats:
    """The number of tasks of each status, for each queue."""

    queues: list[QueueStats]

    def lines(self) -> list[Line]:
        """Return a table with a row for each queue."""
        if not self.queues:
            return ["No tasks."]
        statuses = ("free", "claimed", "expired", "done", "failed", "cancelled")
        lines: list[Line] = [header_row("queue", *statuses)]
        for stats in self.queues:
            counts = [str(getattr(stats, status)) for status in statuses]
            lines.append((stats.queue, *counts))
        return lines


def command(
    ctx: typer.Context,
    queue: Annotated[
        str | None,
        typer.Argument(
            autocompletion=_store.queue_names, help="Count only the tasks in this queue."
        ),
    ] = None,
    store: _store.StoreOption = None,
) -> Stats:
    """Count the tasks in each queue by their status."""
    return Stats(_store.connect(ctx, store).task_stats(queue))
