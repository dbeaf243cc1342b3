"""Run the declared checks against built outputs. Many run at once, but not during a build."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ...kit.completion import offering
from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import ChecksFailed
from ...kit.contract.expected import EXPECTED, to_tool_error
from ...kit.global_options import DryRunOption
from ..build_lock import LockMode, Workplace, build_lock
from ..errors import NotBuilt
from ..job import Job
from ..job_result import JobResult, result_lines
from ..journal import BuildRecord
from ..plan import PlannedJob, plan
from ..publish import Outputs
from ..run import JobRun
from ..workspace import Declarations, check_names, choose, read_again, read_workspace
from ._options import ForceUnlockOption, JobsOption
from .build import Build, build_targets
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


@dataclass(frozen=True)
class Report:
    """What has become of each check. It is also the data of a run that was interrupted."""

    checks: list[JobResult]

    @property
    def truncated(self) -> bool:
        """Whether the output of a command is not shown whole. Its log has all of it."""
        return any(check.is_shortened for check in self.checks)

    def lines(self) -> list[str]:
        """Return the text that a person reads: each check that needs attention, and a summary."""
        return result_lines(self.checks, "check")


def test(
    context: Context,
    names: list[str],
    jobs: int | None,
    *,
    first_build: bool,
    force_unlock: bool,
) -> Report:
    """Run these checks, or all of them if no name is given. Raise ChecksFailed or NotBuilt.

    With `first_build`, the lock stays exclusive until the end: an exclusive lock cannot become a
    shared one without letting another build in between.
    """
    # A mistake is reported before the lock file and the directories of a build are created.
    declarations = read_workspace(context)
    check_names("check", names, declarations.checks)
    mode: LockMode = "exclusive" if first_build else "shared"
    with build_lock(context, mode, jobs, force_unlock=force_unlock) as workplace:
        declarations = read_again(context, declarations)
        chosen = choose("check", names, declarations.checks)
        checks = [declarations.checks[name] for name in chosen]
        needs = _needs_of(checks)
        if first_build and needs:
            build_targets(workplace, declarations, needs)
        outputs = Outputs(context.workspace, context.signals.check)
        _check_that_needs_are_built(outputs, needs)
        _warn_of_stale_outputs(context, declarations, outputs, needs)
        report = _run_checks(workplace, checks, outputs)
    failed = [check.name for check in report.checks if check.status == "failed"]
    if failed:
        raise ChecksFailed(data=report, count=len(failed), failed=failed)
    return report


def _needs_of(checks: list[Job]) -> list[str]:
    """Return the targets that these checks need, each once."""
    needs = []
    for check in checks:
        for target in check.needs:
            if target not in needs:
                needs.append(target)
    return needs


def _check_that_needs_are_built(outputs: Outputs, needs: list[str]) -> None:
    """Raise NotBuilt if one of these targets has no outputs."""
    missing = [name for name in needs if not outputs.version_directory(name).exists()]
    if missing:
        raise NotBuilt(targets=missing)


def _warn_of_stale_outputs(
    context: Context,
    declarations: Declarations,
    outputs: Outputs,
    needs: list[str],
) -> None:
    """Warn of targets whose outputs are tested although they are out of date."""
    if not needs:
        # Without names, plan() would plan all targets.
        return
    for name, planned in plan(declarations, needs, outputs).items():
        if planned.must_run:
            message = f"The checks use an old version of {name}: {planned.reason}."
            context.warn("STALE_OUTPUT", message)


def _run_checks(workplace: Workplace, checks: list[Job], outputs: Outputs) -> Report:
    planned = {check.name: _plan_check(check) for check in checks}
    job_run = JobRun(workplace, "check", planned, outputs)
    try:
        job_run.run()
    except EXPECTED as error:
        raise to_tool_error(error).with_data(Report(job_run.results)) from error
    return Report(job_run.results)


def _plan_check(check: Job) -> PlannedJob:
    """Return the plan for a check. Unlike a target, it runs each time."""
    built_from_nothing = BuildRecord(run=[], wanted=[], inputs={}, needs={})
    return PlannedJob(check, built_from_nothing, must_run=True)


def _check_names(context: Context) -> list[str]:
    return list(read_workspace(context).checks)


ChecksArgument: Any = typer.Argument(
    metavar="[CHECK...]",
    help="Checks to run. Without a name, runs all.",
    autocompletion=offering(_check_names),
)


def command(
    ctx: typer.Context,
    checks: Annotated[list[str] | None, ChecksArgument] = None,
    first_build: Annotated[
        bool,
        typer.Option("--build", help="Build the targets that the checks need before running them."),
    ] = False,
    jobs: JobsOption = None,
    force_unlock: ForceUnlockOption = False,
    dry_run: DryRunOption = False,
) -> Report | Build:
    """Run checks against the built outputs, in parallel.

    Checks are declared in tool.toml. Each check runs in a temporary directory that contains its
    declared inputs and the outputs that it needs.

    If you pass --build and the build fails, no check runs, and the output is that of `build`.
    """
    context: Context = ctx.obj
    names = checks or []
    if dry_run:
        chosen = choose("check", names, read_workspace(context).checks)
        return Report([JobResult(name, "would_run") for name in chosen])
    return test(context, names, jobs, first_build=first_build, force_unlock=force_unlock)
