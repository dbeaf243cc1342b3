"""Claim the oldest tasks of a queue, for as long as a lease lasts."""

from typing import Annotated, NamedTuple

import typer

from ....kit.contract.response import Effect, value_text
from ....kit.global_options import DryRunOption
from ...protocol import Claimed, Once
from .. import _store

spec = _store.changes(
    "task claim mail",
    "task claim mail --count 10 --lease 5m",
    before=("task add mail 'to: ann'",),
    idempotent=False,
    prints_value=True,
)


class Claim(NamedTuple):
    queue: str
    tasks: list[Claimed]
    effect: Effect
    replayed: bool = False

    def lines(self) -> list[str]:
        lines = [
            f"{one.id}:{one.generation}  {value_text(one.body)}  (until {one.lease_expires_at})" for one in self.tasks
        ]
        return lines or [f"Nothing to claim in {self.queue}."]


def command(
    ctx: typer.Context,
    queue: _store.QueueArgument,
    count: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="How many at most.")] = 1,
    lease: _store.LeaseOption = "60s",  # type: ignore[assignment]
    worker: Annotated[
        str | None, typer.Option(metavar="NAME", callback=_store.NAME, help="Who claims.  [default: the session id]")
    ] = None,
    max_attempts: _store.MaxAttemptsOption = 0,
    idempotency_key: _store.KeyOption = None,
    store: _store.StoreOption = None,
    dry_run: DryRunOption = False,
) -> Claim:
    """Claim the oldest tasks of a queue.

    Those that are free or past their lease; an empty list if there are none.
    """
    claim = _store.opened(ctx, store).task_claim(
        queue,
        worker or ctx.obj.session_id,
        lease_ms=lease,
        count=count,
        max_attempts=max_attempts,
        once=Once(idempotency_key),
        is_named=worker is not None,
    )
    return Claim(queue, claim.tasks, "updated" if claim.tasks else "unchanged", claim.replayed)
