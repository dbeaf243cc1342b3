"""Claim the oldest tasks of a queue for a limited time."""

from dataclasses import dataclass
from typing import Annotated

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


@dataclass(frozen=True)
class ClaimedTasks:
    """The tasks that were claimed."""

    queue: str
    tasks: list[Claimed]
    effect: Effect
    replayed: bool = False

    def lines(self) -> list[str]:
        """Return a line with the claim, the body and the lease of each task."""
        if not self.tasks:
            return [f"Nothing to claim in {self.queue}."]
        lines = []
        for task in self.tasks:
            claim = f"{task.id}:{task.generation}"
            lines.append(f"{claim}  {value_text(task.body)}  (until {task.lease_expires_at})")
        return lines


def command(
    ctx: typer.Context,
    queue: _store.QueueArgument,
    count: Annotated[
        int,
        typer.Option(min=1, max=1000, metavar="N", help="Claim at most N tasks."),
    ] = 1,
    lease: _store.LeaseOption = "60s",  # type: ignore[assignment]
    worker: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            callback=_store.CHECK_NAME,
            help="Set the name of the worker that claims the tasks.",
            show_default="the session ID",
        ),
    ] = None,
    max_attempts: _store.MaxAttemptsOption = 0,
    idempotency_key: _store.KeyOption = None,
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> ClaimedTasks:
    """Claim the oldest tasks in a queue, to work on them yourself.

    Only tasks that are free or whose lease has expired can be claimed. If there are none, the
    command succeeds, and its list of tasks is empty.
    """
    is_named = worker is not None
    claim = _store.connect(ctx, store).task_claim(
        queue,
        ctx.obj.session_id if worker is None else worker,
        lease_ms=lease,
        count=count,
        max_attempts=max_attempts,
        once=Once(idempotency_key),
        is_named=is_named,
    )
    return ClaimedTasks(
        queue=queue,
        tasks=claim.tasks,
        effect="updated" if claim.tasks else "unchanged",
        replayed=claim.replayed,
    )
