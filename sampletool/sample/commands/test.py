"""Run the declared checks against built outputs. Many run at once, but not during a build."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

import typer

from ...kit.completion import offering
from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import ChecksFailed
from ...kit.global_options import DryRunOption
from ..errors import NotBuilt
from ..plan import Planned, plan
from ..publish import Built, Outputs
from ..run import JobResult, JobRun, locked, reporting, result_lines
from ..workspace import Job, Jobs, choose, read_workspace
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

_ALWAYS = ""
"""The reason to run a check. Unlike a target, it runs each time, so there is nothing to say."""


@dataclass(frozen=True)
class Report:
    """What has become of each check. It is also the data of a run that was interrupted."""

    checks: list[JobResult]

    def lines(self) -> list[str]:
        """Return what a person sees."""
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
    choose("check", names, read_workspace(context).checks)
    mode: Literal["exclusive", "shared"] = "exclusive" if first_build else "shared"
    with locked(context, mode, jobs, force_unlock=force_unlock) as place:
        declared = read_workspace(context)
        checks = [declared.checks[name] for name in choose("check", names, declared.checks)]
        needed = _needs_of(checks)
        if first_build and needed:
            build_targets(place, declared, needed)
        outputs = Outputs(context.workspace, context.signals.check)
        if needed:
            _warn_of_stale(context, declared, outputs, needed)
        planned = {check.name: _plan_check(check) for check in checks}
        run = JobRun(place, "check", planned, outputs)
        with reporting(lambda: Report(run.results)):
            run.run()
    result = Report(run.results)
    failed = [check.name for check in result.checks if check.status == "failed"]
    if failed:
        raise ChecksFailed(data=result, count=len(failed), failed=failed)
    return result


def _needs_of(checks: list[Job]) -> list[str]:
    """Return the targets that these checks need, each once."""
    needed: dict[str, None] = {}
    for check in checks:
        needed.update(dict.fromkeys(check.needs))
    return list(needed)


def _plan_check(check: Job) -> Planned:
    built_from_nothing = Built(run=[], wanted=[], inputs={}, needs={})
    return Planned(check, built_from_nothing, _ALWAYS)


def _warn_of_stale(context: Context, declared: Jobs, outputs: Outputs, needed: list[str]) -> None:
    """Warn of targets that are tested although they are out of date. Raise NotBuilt."""
    missing = [name for name in needed if not outputs.version_of(name).exists()]
    if missing:
        raise NotBuilt(targets=missing)
    for name, planned in plan(declared, needed, outputs).items():
        if planned.reason is not None:
            message = f"The checks use an old version of {name}: {planned.reason}."
            context.warn("STALE_OUTPUT", message)


def _check_names(context: Context) -> list[str]:
    return list(read_workspace(context).checks)


ChecksArgument: Any = typer.Argument(
    metavar="[CHECK...]",
    help="Run these checks. Without a name, run all.",
    autocompletion=offering(_check_names),
)


def command(
    ctx: typer.Context,
    checks: Annotated[list[str] | None, ChecksArgument] = None,
    first_build: Annotated[
        bool,
        typer.Option("--build", help="First build the targets that the checks need."),
    ] = False,
    jobs: JobsOption = None,
    force_unlock: ForceUnlockOption = False,
    dry_run: DryRunOption = False,
) -> Report | Build:
    """Run checks against the built outputs, in parallel.

    The checks are declared in tool.toml. Each runs in a directory of its own, which contains its
    declared inputs and the outputs that it needs. If --build fails, no check runs, and the data is
    that of the build.
    """
    context: Context = ctx.obj
    names = checks or []
    if dry_run:
        chosen = choose("check", names, read_workspace(context).checks)
        return Report([JobResult(name, "would_run") for name in chosen])
    return test(context, names, jobs, first_build=first_build, force_unlock=force_unlock)
