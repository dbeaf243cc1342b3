"""Check that there is enough of everything; the report lies in the directory of the session."""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import typer

from sampletool.kit.context import AT_ONCE, Context
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import ChecksFailed, NoWorkspace
from sampletool.kit.contract.file_errors import OutputExists
from sampletool.kit.global_options import DryRunOption
from sampletool.kit.safety.atomic_file import create
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.places import workspace_lock

from ...stock import stock_file

spec = CommandSpec(
    effect="sessions",
    errors=(NoWorkspace, ChecksFailed, OutputExists),
    locks=("check",),
    examples=("inventory check --session-id monday",),
)
FEW = Path(__file__).parents[2] / "few.py"


class Checked(NamedTuple):
    few: list[str]
    output: str

    def lines(self) -> list[str]:
        return [*self.few, f"report: {self.output}"]


def find_few(context: Context, stock: Path) -> list[str]:
    """By a child, one at a time in a workspace: after kill -9 of this call the child keeps the lock until it ends."""
    lock = workspace_lock(context.workspace, "check")
    with (
        context.hold(lock, "check", "exclusive", AT_ONCE) as hold,
        Children(context.signals, hold.descriptors, [lock]) as children,
    ):
        call = [sys.executable, str(FEW), str(stock), str(context.settings.value("low_stock"))]
        children.start("few", call, cwd=context.workspace, env=os.environ)
        ended = children.next_ended()
    if ended is None or ended.status != 0:
        raise ChecksFailed(count=1, failed=["few"])
    return ended.tail.split()


def command(ctx: typer.Context, dry_run: DryRunOption = False) -> Checked:
    """Check that there is enough of everything.

    Fewer pieces than the setting low_stock are too few. A report that is there is never replaced.
    """
    context: Context = ctx.obj
    report = context.session_directory / "check.txt"
    if dry_run:
        return Checked([], str(report))
    few = find_few(context, stock_file(context))
    try:
        create(report, "".join(f"{item}\n" for item in few).encode())
    except FileExistsError:
        raise OutputExists(str(report), found="a report of this session") from None
    checked = Checked(few, str(report))
    if few:
        raise ChecksFailed(count=len(few), failed=few, data=checked)
    return checked
