"""Bring targets up to date, in parallel, while no other command builds or tests."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ...kit.completion import offering
from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import NoWorkspace
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption
from ..errors import BuildFailed, TargetNotFound
from ..plan import plan
from ..publish import Outputs
from ..run import JobResult, JobRun, Workplace, locked, reporting, result_lines
from ..workspace import Jobs, choose, read_workspace
from ._options import ForceUnlockOption, JobsOption

spec = CommandSpec(
    effect="outputs",
    errors=(NoWorkspace, TargetNotFound, BuildFailed),
    locks=("build", "session"),
    at_once=("build",),
    reads=("workspace",),
    destroys="The previous outputs of a target. They can be built again.",
    runs_what_it_is_given=True,
    before=("init .",),
    examples=("build", "build report", "build --dry-run"),
)


@dataclass(frozen=True)
class Build:
    """What has become of each target. It is also the data of a build that was interrupted."""

    effect: Effect
    targets: list[JobResult]

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return result_lines(self.targets, "target")


def report(targets: list[JobResult]) -> Build:
    """Return the result of a build."""
    has_changed = any(target.status in ("built", "stale") for target in targets)
    return Build("updated" if has_changed else "unchanged", targets)


def build(
    context: Context,
    names: list[str],
    jobs: int | None,
    *,
    force_unlock: bool,
) -> Build:
    """Bring these targets up to date, or all of them if no name is given."""
    # A mistake is reported before the lock file and the directories of a build are created.
    choose("target", names, read_workspace(context).targets)
    with locked(context, "exclusive", jobs, force_unlock=force_unlock) as place:
        # The file may have been changed while this command waited for the lock.
        return build_targets(place, read_workspace(context), names)


def forecast(context: Context, names: list[str]) -> Build:
    """Return what would be built, and why. Take no lock, and create nothing."""
    outputs = Outputs(context.workspace, context.signals.check)
    targets = []
    for name, planned in plan(read_workspace(context), names, outputs).items():
        if planned.reason is None:
            targets.append(JobResult(name, "up_to_date"))
        else:
            targets.append(JobResult(name, "stale", planned.reason))
    return report(targets)


def build_targets(place: Workplace, declared: Jobs, names: list[str]) -> Build:
    """Bring these targets, and the targets that they need, up to date. Raise BuildFailed."""
    outputs = Outputs(place.context.workspace, place.context.signals.check)
    planned = plan(declared, names, outputs)
    run = JobRun(place, "target", planned, outputs)
    # If the disk is full, the journal may fail to be flushed at the end. Everything was built then.
    with reporting(lambda: report(run.results)), outputs:
        run.run()
    built = report(run.results)
    if built.effect == "updated":
        outputs.prune()
    failed = [target.name for target in built.targets if target.status == "failed"]
    if failed:
        raise BuildFailed(data=built, count=len(failed), total=len(planned), failed=failed)
    return built


def _target_names(context: Context) -> list[str]:
    return list(read_workspace(context).targets)


TargetsArgument: Any = typer.Argument(
    metavar="[TARGET...]",
    help="Build these targets and the targets that they need. Without a name, build all.",
    autocompletion=offering(_target_names),
)


def command(
    ctx: typer.Context,
    targets: Annotated[list[str] | None, TargetsArgument] = None,
    jobs: JobsOption = None,
    force_unlock: ForceUnlockOption = False,
    dry_run: DryRunOption = False,
) -> Build:
    """Build targets that are out of date, in parallel.

    The targets are declared in tool.toml. A target is built after the targets that it needs, in a
    directory that contains only its declared inputs. If it succeeds, all of its outputs appear at
    once in out/TARGET. If it fails or is interrupted, its previous outputs stay, and the next build
    continues from there.
    """
    context: Context = ctx.obj
    names = targets or []
    if dry_run:
        return forecast(context, names)
    return build(context, names, jobs, force_unlock=force_unlock)
