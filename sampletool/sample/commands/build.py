"""Bring targets up to date, in parallel, while no other command builds or tests."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...kit.completion import offering
from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import NoWorkspace
from ...kit.contract.expected import EXPECTED, to_tool_error
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption
from ..errors import BuildFailed, InvalidWorkspace, TargetNotFound
from ..job_result import JobResult, Status, result_lines
from ..plan import plan
from ..publish import Outputs
from ..workspace import Declarations, check_names, read_again, read_workspace
from ._options import ForceUnlockOption, JobsOption

if TYPE_CHECKING:
    from ..build_lock import Workplace

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

    @property
    def truncated(self) -> bool:
        """Whether the output of a command is not shown whole. Its log has all of it."""
        return any(target.is_shortened for target in self.targets)

    def lines(self) -> list[str]:
        """Return the text that a person reads: each target that needs attention, and a summary."""
        return result_lines(self.targets, "target")


def build(
    context: Context,
    names: list[str],
    jobs: int | None,
    *,
    force_unlock: bool,
) -> Build:
    """Bring these targets up to date, or all of them if no name is given."""
    # A mistake is reported before the lock file and the directories of a build are created.
    declarations = read_workspace(context)
    check_names("target", names, declarations.targets)
    if not force_unlock:
        up_to_date = _result_if_up_to_date(context, declarations, names)
        if up_to_date is not None:
            return up_to_date
    # Importing this takes 15 ms, and a build with nothing to do does not need it.
    from ..build_lock import build_lock

    with build_lock(context, "exclusive", jobs, force_unlock=force_unlock) as workplace:
        declarations = read_again(context, declarations)
        return build_targets(workplace, declarations, names)


def _result_if_up_to_date(
    context: Context,
    declarations: Declarations,
    names: list[str],
) -> Build | None:
    """Return the result of a build if all of its targets are up to date. Otherwise, return None.

    This takes no lock, and reads neither inputs nor outputs. So it can return None although the
    targets are up to date: an input has a new time and the same content, for example, or another
    command is building. The caller then takes the lock, and checks the content.
    """
    outputs = Outputs(context.workspace, reads_files=False)
    try:
        planned = plan(declarations, names, outputs)
    except InvalidWorkspace:
        # The build reports this under the lock, unless the file has been corrected by then.
        return None
    if any(job.must_run for job in planned.values()):
        return None
    return Build("unchanged", [JobResult(name, "up_to_date") for name in planned])


def build_targets(workplace: "Workplace", declarations: Declarations, names: list[str]) -> Build:
    """Bring these targets, and the targets that they need, up to date. Raise BuildFailed."""
    # This imports the same modules as build_lock.py.
    from ..run import JobRun

    outputs = Outputs(workplace.context.workspace, workplace.context.signals.check)
    planned = plan(declarations, names, outputs)
    job_run = JobRun(workplace, "target", planned, outputs)
    try:
        # Leaving this block flushes the journal. That can fail although all targets were built.
        with outputs:
            job_run.run()
    except EXPECTED as error:
        raise to_tool_error(error).with_data(_summarize(job_run.results)) from error
    build = _summarize(job_run.results)
    if build.effect == "updated":
        outputs.remove_old_versions()
    failed = [target.name for target in build.targets if target.status == "failed"]
    if failed:
        raise BuildFailed(data=build, count=len(failed), total=len(planned), failed=failed)
    return build


def predict_build(context: Context, names: list[str]) -> Build:
    """Return which targets a build would build, and why. Take no lock, and create nothing."""
    outputs = Outputs(context.workspace, context.signals.check)
    declarations = read_workspace(context)
    targets = []
    for name, planned in plan(declarations, names, outputs).items():
        status: Status = "stale" if planned.must_run else "up_to_date"
        targets.append(JobResult(name, status, planned.reason))
    return _summarize(targets)


def _summarize(targets: list[JobResult]) -> Build:
    """Return the result of a build with these targets."""
    is_updated = any(target.status in ("built", "stale") for target in targets)
    return Build("updated" if is_updated else "unchanged", targets)


def _target_names(context: Context) -> list[str]:
    return list(read_workspace(context).targets)


TargetsArgument: Any = typer.Argument(
    metavar="[TARGET...]",
    help="Targets to build, along with the targets that they need. Without a name, builds all.",
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

    Targets are declared in tool.toml. Each target is built after the targets that it needs, in a
    temporary directory that contains only its declared inputs.

    When a target succeeds, all of its outputs appear in out/TARGET at once. When it fails or is
    interrupted, the previous outputs are kept. Targets that have succeeded are not built again by
    the next build.
    """
    context: Context = ctx.obj
    names = targets or []
    if dry_run:
        return predict_build(context, names)
    return build(context, names, jobs, force_unlock=force_unlock)
