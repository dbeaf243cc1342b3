"""Remove tasks that ended long ago."""

from typing import Annotated, NamedTuple

import typer

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _options
from sampletool.state.opening import store_of

spec = _options.changes_store(
    "task clean --older-than 30d",
    "task clean --older-than 7d --status done,failed",
    destroys="The tasks that are removed, with their bodies and ids.",
)

_ENDED = ("done", "failed")


class Cleaned(NamedTuple):
    removed: int
    effect: Effect

    def lines(self) -> list[str]:
        return [f"{self.removed} removed"]


def parse_statuses(text: str) -> list[str]:
    statuses = text.split(",")
    if unknown := [status for status in statuses if status not in _ENDED]:
        problem = f"{unknown[0]!r} is not done or failed"
        raise InvalidValues(Mistake("--status", "INVALID_VALUE", problem, text, "Give done, failed, or done,failed."))
    return statuses


def command(
    ctx: typer.Context,
    older_than: Annotated[
        int, typer.Option(metavar="DURATION", parser=_options.parse_ms, help="How long ago they ended.")
    ],
    status: Annotated[str, typer.Option(metavar="STATUSES", help="done, failed, or done,failed.")] = "done",
    store: _options.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Cleaned:
    """Remove tasks that ended long ago.

    In steps of a few hundred, so that nobody waits long. From then on their ids are as good as new.
    """
    context: Context = ctx.obj
    statuses, opened = parse_statuses(status), store_of(context, store)
    removed, after = opened.task_clean(older_than, statuses)
    while after:
        context.signals.check()
        some, after = opened.task_clean(older_than, statuses, after)
        removed += some
    return Cleaned(removed, "deleted" if removed else "unchanged")
