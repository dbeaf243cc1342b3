"""Bring targets up to date, in parallel, while nobody else builds or tests."""

from typing import Annotated, Any, Literal, NamedTuple

import typer

from ...kit.completion import offering
from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import NoWorkspace
from ...kit.contract.response import Effect
from ...kit.global_options import DryRunOption
from ...kit.program import WORKSPACE_FILE
from ..errors import BuildFailed, TargetNotFound
from ..plan import plan
from ..publish import Outputs
from ..run import Done, Workplace, locked, run_stale
from ..workspace import Jobs, choose, read_workspace
from ._options import JobsOption

spec = CommandSpec(
    effect="outputs",
    errors=(NoWorkspace, TargetNotFound, BuildFailed),
    locks=("build", "session"),
    at_once=("build",),
    reads=("workspace",),
    destroys="The outputs that a target had; they can be built again.",
    runs_what_it_is_given=True,
    before=("init .",),
    examples=("build", "build report", "build --dry-run"),
)
ForceUnlockOption = Annotated[bool, typer.Option("--force-unlock", help="First end what a dead build left running.")]


def names_of(kind: Literal["target", "check"]) -> Any:
    """The argument for them; the shell offers what is declared."""
    offered = offering(lambda context: getattr(read_workspace(context), f"{kind}s"))
    return typer.Argument(metavar=f"[{kind.upper()}...]", help="All, if none is named.", autocompletion=offered)


class Build(NamedTuple):
    """What has become of each target; also the answer of a build that was stopped on the way."""

    effect: Effect
    targets: list[Done]

    def lines(self) -> list[str]:
        lines = [line for target in self.targets for line in target.lines()]
        return lines or [f"There are no targets in {WORKSPACE_FILE}."]


def build(context: Context, names: list[str], jobs: int | None, *, force_unlock: bool) -> Build:
    choose("target", names, read_workspace(context).targets)  # what is wrong is an error before anything is made
    with locked(context, "exclusive", jobs, force_unlock=force_unlock) as place:
        return build_targets(place, read_workspace(context), names)


def forecast(context: Context, names: list[str]) -> Build:
    """What would be built, and why. Takes no lock, makes nothing."""
    planned = plan(read_workspace(context), names, Outputs(context.workspace, context.signals.check))
    targets = [Done(name, "up_to_date" if job.reason is None else "stale", job.reason) for name, job in planned.items()]
    return _report(targets)


def build_targets(place: Workplace, declared: Jobs, names: list[str]) -> Build:
    """Bring these targets, and what they need, up to date."""
    with Outputs(place.context.workspace, place.context.signals.check) as outputs:
        planned = plan(declared, names, outputs)
        result = run_stale(place, "target", planned, outputs, _report)
        if result.effect == "updated":
            outputs.prune()
    if failed := [target.name for target in result.targets if target.status == "failed"]:
        raise BuildFailed(data=result, count=len(failed), total=len(planned), failed=failed)
    return result


def _report(targets: list[Done]) -> Build:
    has_changed = any(target.status in ("built", "stale") for target in targets)
    return Build("updated" if has_changed else "unchanged", targets)


def command(
    ctx: typer.Context,
    targets: Annotated[list[str] | None, names_of("target")] = None,
    jobs: JobsOption = None,
    force_unlock: ForceUnlockOption = False,
    dry_run: DryRunOption = False,
) -> Build:
    """Build what is out of date, in parallel.

    Targets are declared in tool.toml; what a target needs is built first. Each runs in a directory that holds only
    what it declared. When it succeeded, its outputs appear all together under out/TARGET. A build that fails or is
    stopped leaves the last good outputs, and the next one goes on from there.
    """
    context: Context = ctx.obj
    if dry_run:
        return forecast(context, targets or [])
    return build(context, targets or [], jobs, force_unlock=force_unlock)
