"""Finish a claimed task."""

import typer

from ....kit.global_options import DryRunOption
from .. import _store

spec = _store.changes("task finish ann:1", before=_store.A_CLAIM)


def command(
    ctx: typer.Context, claim: _store.ClaimArgument, store: _store.StoreOption = None, dry_run: DryRunOption = False
) -> _store.TaskChanged:
    """Mark a claimed task as done.

    Refused if another worker has claimed it since. Doing it twice changes nothing.
    """
    return _store.TaskChanged(claim.task, _store.opened(ctx, store).task_finish(*claim), claim.generation)
