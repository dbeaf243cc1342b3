"""Extend the lease of a claim."""

import typer

from ....kit.global_options import DryRunOption
from .. import _store

spec = _store.changes(
    "task renew ann:1 --lease 5m",
    before=_store.PREPARE_A_CLAIM,
    idempotent=False,
)


def command(
    ctx: typer.Context,
    claim: _store.ClaimArgument,
    lease: _store.LeaseOption = "60s",  # type: ignore[assignment]
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> _store.TaskChanged:
    """Extend the lease of a claimed task.

    The new lease starts now. If the old one has already expired, the command fails, even if no
    other worker has claimed the task.
    """
    opened_store = _store.connect(ctx, store)
    expires_at = opened_store.task_renew(claim.task, claim.generation, lease_ms=lease)
    return _store.TaskChanged(
        id=claim.task,
        effect="updated",
        generation=claim.generation,
        lease_expires_at=expires_at,
    )
