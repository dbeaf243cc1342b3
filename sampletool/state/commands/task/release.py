"""Give a claimed task back."""

import typer

from ....kit.global_options import DryRunOption
from .. import _store

spec = _store.changes("task release ann:1 --delay 30s", before=_store.A_CLAIM)


def command(
    ctx: typer.Context,
    claim: _store.ClaimArgument,
    delay: _store.DelayOption = "0",  # type: ignore[assignment]
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> _store.TaskChanged:
    """Give a claimed task back, unfinished.

    Then anybody may claim it; after its last allowed attempt it is failed instead.
    """
    effect = _store.opened(ctx, store).task_release(*claim, delay_ms=delay)
    return _store.TaskChanged(claim.task, effect, claim.generation)
