"""Give a claimed task back."""

import typer

from ....kit.global_options import DryRunOption
from .. import _store

spec = _store.changes("task release ann:1 --delay 30s", before=_store.PREPARE_A_CLAIM)


def command(
    ctx: typer.Context,
    claim: _store.ClaimArgument,
    delay: _store.DelayOption = "0",  # type: ignore[assignment]
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> _store.TaskChanged:
    """Give a claimed task back to its queue without finishing it.

    Any worker can then claim the task again. If this was its last attempt, it is marked as failed
    instead.
    """
    opened_store = _store.connect(ctx, store)
    effect = opened_store.task_release(claim.task, claim.generation, delay_ms=delay)
    return _store.TaskChanged(claim.task, effect, claim.generation)
