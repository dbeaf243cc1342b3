"""Run `lab check` under its old name.

The old name promised a proof, but `lab check` only explores the schedules within a bound.
"""

import typer

from ....kit.program import PROGRAM
from ...explore import MOST_SCHEDULES
from ._options import AllOption, NameArgument, spec_with
from .check import Check, Checks, LimitOption, WorkersOption, run_check

spec = spec_with("lab prove planted-link")._replace(deprecated=f"Use `{PROGRAM} lab check`.")


def command(
    ctx: typer.Context,
    name: NameArgument = None,
    every: AllOption = False,
    workers: WorkersOption = None,
    limit: LimitOption = MOST_SCHEDULES,
) -> Check | Checks:
    """Do the same as `lab check`, which used to have this name.

    Scripts that use the old name continue to work. The name was changed because running some of the
    possible orders does not prove anything.
    """
    return run_check(ctx.obj, name, every, workers, limit)
