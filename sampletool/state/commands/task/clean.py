"""Remove tasks that ended long ago."""

from typing import Annotated, Literal, NamedTuple

import typer

from ....kit.contract.response import Effect
from ....kit.global_options import DryRunOption
from .. import _store

spec = _store.changes(
    "task clean --older-than 30d",
    "task clean --older-than 7d --status done,failed",
    destroys="The tasks that are removed, with their bodies and ids.",
)


class Cleaned(NamedTuple):
    removed: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.removed} removed"]


def command(
    ctx: typer.Context,
    older_than: Annotated[int, _store.duration("How long ago they ended.")],
    status: Annotated[Literal["done", "failed", "done,failed"], typer.Option(help="How they ended.")] = "done",
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Cleaned:
    """Remove tasks that ended long ago.

    In steps of a few hundred, so that nobody waits long. From then on their ids are as good as new.
    """
    opened, statuses = _store.opened(ctx, store), status.split(",")
    removed, after = opened.task_clean(older_than, statuses)
    while after:
        ctx.obj.signals.check()
        some, after = opened.task_clean(older_than, statuses, after)
        removed += some
    return Cleaned(removed, "deleted" if removed else "unchanged")
