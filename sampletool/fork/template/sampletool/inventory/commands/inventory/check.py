"""Check that there is enough of everything; the report lies in the directory of the session."""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import typer

from ....kit.context import NO_WAIT_SECONDS, Context
from ....kit.contract.command_spec import CommandSpec
from ....kit.contract.errors import ChecksFailed, NoWorkspace
from ....kit.contract.text import printable_lines
from ....kit.global_options import DryRunOption
from ....kit.places import session_root, workspace_lock
from ....kit.safety.atomic_file import replace
from ....kit.safety.children import Children
from ....kit.safety.toml_file import read_toml
from ... import few
from ...stock import counts, stock_file

spec = CommandSpec(
    effect="sessions", errors=(NoWorkspace, ChecksFailed), locks=("session", "check"), at_once=("check",),
    examples=("inventory check",),
)  # fmt: skip


class Checked(NamedTuple):
    few: list[str]
    output: str

    def lines(self) -> list[str]:
        return [*self.few, f"report: {self.output}"]


def check(context: Context, stock: Path, least: int, report: Path) -> list[str]:
    """By a child, one at a time in a workspace: after kill -9 of this call the child keeps the lock until it ends."""
    scratch = report.with_name(f".{report.name}.{context.request_id}")
    lock = workspace_lock(context.workspace, "check")
    try:
        with (
            context.hold(lock, "check", "exclusive", NO_WAIT_SECONDS) as hold,
            Children(context.signals, hold.descriptors, [lock]) as children,
        ):
            call = [sys.executable, few.__file__, str(stock), str(least), str(scratch)]
            children.start("few", call, cwd=context.workspace, env=os.environ)
            child_exit = children.next_exit()
            assert child_exit is not None
            if child_exit.exit_code != 0:
                output = printable_lines(child_exit.output_tail).strip()
                raise ChecksFailed(f"The check ended with status {child_exit.exit_code}: {output}")
            replace(report, scratch.read_bytes())
            return scratch.read_text("utf-8").splitlines()
    finally:
        scratch.unlink(missing_ok=True)


def command(ctx: typer.Context, dry_run: DryRunOption = False) -> Checked:
    """Check that there is enough of everything.

    Fewer pieces than the setting scarce_below are too few.
    """
    context: Context = ctx.obj
    stock, least = stock_file(context), context.settings.value("scarce_below")
    forecast = few.few_of(counts(read_toml(stock)), least)
    report = (session_root() / context.session_id if dry_run else context.session_directory) / "check.txt"
    checked = Checked(forecast if dry_run else check(context, stock, least, report), str(report))
    if checked.few:
        raise ChecksFailed(count=len(checked.few), failed=checked.few, data=checked)
    return checked
