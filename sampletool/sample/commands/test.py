"""Run the declared checks against built outputs: many at once, none during a build."""

from typing import Annotated, NamedTuple

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import ChecksFailed
from ...kit.global_options import DryRunOption
from ...kit.program import WORKSPACE_FILE
from ..errors import NotBuilt
from ..plan import Planned, plan
from ..publish import Built, Outputs
from ..run import Done, locked, run_stale
from ..workspace import Jobs, choose, read_workspace
from ._options import JobsOption
from .build import Build, ForceUnlockOption, build_targets, names_of
from .build import spec as build_spec

spec = CommandSpec(
    effect="outputs",
    errors=(*build_spec.errors, NotBuilt, ChecksFailed),
    locks=("build", "session"),
    at_once=("build",),
    reads=("workspace",),
    runs_what_it_is_given=True,
    before=("init .", "build"),
    examples=("test", "test --build", "test totals-add-up"),
)


class Report(NamedTuple):
    """What has become of each check; also the answer of a run that was stopped on the way."""

    checks: list[Done]

    def lines(self) -> list[str]:
        lines = [line for check in self.checks for line in check.lines()]
        return lines or [f"There are no checks in {WORKSPACE_FILE}."]


def test(context: Context, names: list[str], jobs: int | None, *, first_build: bool, force_unlock: bool) -> Report:
    """With `first_build` the lock stays exclusive throughout: turning it into a shared one is not atomic."""
    choose("check", names, read_workspace(context).checks)  # what is wrong is an error before anything is made
    with locked(context, "exclusive" if first_build else "shared", jobs, force_unlock=force_unlock) as place:
        declared = read_workspace(context)
        checks = [declared.checks[name] for name in choose("check", names, declared.checks)]
        needed = list(dict.fromkeys(need for check in checks for need in check.needs))
        if first_build and needed:
            build_targets(place, declared, needed)
        outputs = Outputs(context.workspace, context.signals.check)
        if needed:
            _warn_of_stale(context, declared, outputs, needed)
        planned = {check.name: Planned(check, Built([], [], {}, {}), "") for check in checks}
        report = run_stale(place, "check", planned, outputs, Report)
    if failed := [check.name for check in report.checks if check.status == "failed"]:
        raise ChecksFailed(data=report, count=len(failed), failed=failed)
    return report


def _warn_of_stale(context: Context, declared: Jobs, outputs: Outputs, needed: list[str]) -> None:
    """Checks run against what is built; a warning where that is not what tool.toml now asks for."""
    if missing := [name for name in needed if not outputs.version_of(name).exists()]:
        raise NotBuilt(targets=missing)
    for name, planned in plan(declared, needed, outputs).items():
        if planned.reason is not None:
            context.warn("STALE_OUTPUT", f"{name} is tested as it was built last: {planned.reason}.")


def command(
    ctx: typer.Context,
    checks: Annotated[list[str] | None, names_of("check")] = None,
    first_build: Annotated[bool, typer.Option("--build", help="First build what is stale, under the lock.")] = False,
    jobs: JobsOption = None,
    force_unlock: ForceUnlockOption = False,
    dry_run: DryRunOption = False,
) -> Report | Build:
    """Check what is built, in parallel.

    Checks are declared in tool.toml; each runs in a directory of its own. If --build fails, the data is its own.
    """
    context: Context = ctx.obj
    if dry_run:
        names = choose("check", checks or [], read_workspace(context).checks)
        return Report([Done(name, "would_run") for name in names])
    return test(context, checks or [], jobs, first_build=first_build, force_unlock=force_unlock)
