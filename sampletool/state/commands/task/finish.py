"""Finish a claimed task."""

import typer

from ....kit.global_options import DryRunOption
from .. import _store

spec = _store.changes("task finish ann:1", before=_store.PREPARE_A_CLAIM)


def command(
    ctx: typer.Context,
    claim: _store.ClaimArgument,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> _store.TaskChanged:
    """Mark a claimed task as done.

    The command fails if another worker has claimed the task since. Finishing a claim twice changes
    nothing.
    """
    effect = _store.connect(ctx, store).task_finish(claim.task, claim.generation)
    return _store.TaskChanged(claim.task, effect, claim.generation)
