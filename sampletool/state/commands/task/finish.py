"""Finish a claimed task."""

import typer

from sampletool.kit.global_options import DryRunOption
from sampletool.state.commands import _options
from sampletool.state.commands._values import ClaimChanged
from sampletool.state.opening import store_of

spec = _options.changes_store("task finish ann 1", "task finish ann:1", before=_options.A_CLAIM)


def command(
    ctx: typer.Context,
    task: _options.TaskArgument,
    generation: _options.GenerationArgument = None,
    store: _options.StoreOption = None,
    dry_run: DryRunOption = False,
) -> ClaimChanged:
    """Mark a claimed task as done.

    Refused if somebody else has claimed it since. Doing it twice changes nothing.
    """
    claim = _options.read_claim(task, generation)
    return ClaimChanged(*claim, store_of(ctx.obj, store).task_finish(*claim))
