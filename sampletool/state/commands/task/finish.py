"""Finish a claimed task."""

from typing import Annotated

import typer

from ....kit.contract.errors import InvalidValues, Mistake
from ....kit.global_options import DryRunOption, checked_by
from ....kit.program import PROGRAM
from ....kit.safety.signals import Signals
from ....kit.stdin import read_stdin
from ...protocol import Fence
from .. import _store
from .._values import parse_value

_MAX_STDIN_BYTES = 1024 * 1024

spec = _store.changes(
    "task finish ann:1",
    """task finish bob:1 --result '{"sent": 3}'""",
    before=("task add mail 'to: ann' 'to: bob' --id ann --id bob", "task claim mail --count 2"),
    stdin_arguments=("claim",),
)


def _check_claim(text: str) -> None:
    """Raise BadParameter unless the text is a claim, or `-`."""
    if text != "-":
        _store.parse_claim(text)


def _read_claim(text: str, signals: Signals) -> Fence:
    """Return the claim that an argument names. `-` reads it from stdin.

    Raise InvalidValues if stdin does not contain exactly one claim.
    """
    if text != "-":
        return _store.parse_claim(text)
    lines = read_stdin(signals, _MAX_STDIN_BYTES, allow_empty=True).split()
    if not lines:
        hint = f"`{PROGRAM} task claim QUEUE --raw` prints an empty line if no task is free."
        raise _invalid_stdin("stdin contains no claim", hint)
    if len(lines) > 1:
        hint = "Finish one claim at a time."
        raise _invalid_stdin(f"stdin contains {len(lines)} claims", hint)
    try:
        return _store.parse_claim(lines[0])
    except typer.BadParameter as error:
        hint = f"Pass the claim as `{PROGRAM} task claim QUEUE --raw` prints it."
        raise _invalid_stdin(error.message, hint) from error


def _invalid_stdin(problem: str, hint: str) -> InvalidValues:
    mistake = Mistake(
        param="TASK:GENERATION",
        code="INVALID_VALUE",
        message=problem,
        value="-",
        suggestion=hint,
    )
    return InvalidValues(mistake)


def command(
    ctx: typer.Context,
    claim: Annotated[
        str,
        typer.Argument(
            metavar="TASK:GENERATION",
            callback=checked_by(_check_claim),
            help="Claim to finish, for example ann:1. Use `-` to read it from stdin.",
        ),
    ],
    result: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            callback=_store.CHECK_TEXT,
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
    fence = _read_claim(claim, ctx.obj.signals)
    effect = _store.connect(ctx, store).task_finish(
        fence.task,
        fence.generation,
        result=None if result is None else parse_value(result, ctx.obj),
    )
    return _store.TaskChanged(fence.task, effect, fence.generation)
