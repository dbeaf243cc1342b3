"""Finish a claimed task."""

from typing import Annotated

import typer

from ....kit.global_options import DryRunOption
from .. import _store
from .._values import parse_value

spec = _store.changes(
    "task finish ann:1",
    """task finish bob:1 --result '{"sent": 3}'""",
    before=("task add mail 'to: ann' 'to: bob' --id ann --id bob", "task claim mail --count 2"),
)


def command(
    ctx: typer.Context,
    claim: _store.ClaimArgument,
    result: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="Store this result with the task: JSON if it is valid JSON, otherwise text.",
        ),
    ] = None,
    store: _store.StoreOption = None,
    # The kit reads --dry-run from the command line, and the store obeys it.
    dry_run: DryRunOption = False,
) -> _store.TaskChanged:
    """Mark a claimed task as done.

    This fails if another worker has claimed the task since. Running the command twice has no
    further effect. `task show` shows the result that you store with --result.
    """
    effect = _store.connect(ctx, store).task_finish(
        claim.task,
        claim.generation,
        result=None if result is None else parse_value(result, ctx.obj),
    )
    return _store.TaskChanged(claim.task, effect, claim.generation)
