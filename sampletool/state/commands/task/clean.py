"""Remove tasks that ended long ago."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from ....kit.contract.response import Effect
from ....kit.global_options import DryRunOption
from .. import _store

spec = _store.changes(
    "task clean --older-than 30d",
    "task clean --older-than 7d --status done,failed",
    destroys="The tasks that are removed, with their bodies and ids.",
)


@dataclass(frozen=True)
class Cleaned:
    """How many tasks were removed."""

    removed: int
    effect: Effect

    def lines(self) -> list[str]:
        """Return the number."""
        return [f"{self.removed} removed"]


def command(
    ctx: typer.Context,
    older_than: Annotated[
        int,
        _store.duration_option(
            "Remove only tasks that ended at least this long ago, for example 30d."
        ),
    ],
    status: Annotated[
        Literal["done", "failed", "cancelled", "done,failed"],
        typer.Option(help="Remove only tasks with this status."),
    ] = "done",
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> Cleaned:
    """Remove tasks that ended a while ago.

    After a task was removed, its ID can be used again. Tasks are removed a few hundred at a time,
    so that other commands do not have to wait long.
    """
    opened_store = _store.connect(ctx, store)
    statuses = status.split(",")
    page = opened_store.task_clean(older_than, statuses)
    removed_count = page.removed
    while page.next_position > 0:
        ctx.obj.signals.check()
        page = opened_store.task_clean(older_than, statuses, page.next_position)
        removed_count += page.removed
    return Cleaned(removed_count, "deleted" if removed_count else "unchanged")
