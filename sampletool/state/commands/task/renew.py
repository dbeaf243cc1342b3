"""Make a claim last longer."""

import typer

from ....kit.global_options import DryRunOption
from .. import _store

spec = _store.changes("task renew ann:1 --lease 5m", before=_store.A_CLAIM, idempotent=False)


def command(
    ctx: typer.Context,
    claim: _store.ClaimArgument,
    lease: _store.LeaseOption = "60s",  # type: ignore[assignment]
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> _store.TaskChanged:
    """Make a claim last longer, from now.

    Refused once it is over, even if nobody else has claimed the task.
    """
    ends = _store.opened(ctx, store).task_renew(*claim, lease_ms=lease)
    return _store.TaskChanged(claim.task, "updated", claim.generation, ends)
