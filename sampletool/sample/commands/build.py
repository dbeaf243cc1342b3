"""Bring targets up to date, in parallel, while nobody else builds or tests."""

from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sampletool.kit.completion import offering
from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import NoWorkspace
from sampletool.kit.global_options import DryRunOption
from sampletool.kit.program import WORKSPACE_FILE
from sampletool.sample.commands._options import JobsOption
from sampletool.sample.errors import BuildFailed, TargetNotFound
from sampletool.sample.plan import Planned, plan, why_stale, with_needs
from sampletool.sample.progress import Progress
from sampletool.sample.publish import Built, Outputs, digest
from sampletool.sample.run import Done, Runner, Workplace, carrying, locked
from sampletool.sample.workspace import Jobs, choose, read_workspace

spec = CommandSpec(
    effect="outputs",
    errors=(NoWorkspace, TargetNotFound, BuildFailed),
    locks=("build", "session"),
    at_once=("build",),
    reads=("workspace",),
    destroys="The outputs that a target had; they can be built again.",
    before=("init .",),
    examples=("build", "build report", "build --dry-run"),
)
_UNKNOWN = "what was read of it is not known"
ForceUnlockOption = Annotated[bool, typer.Option("--force-unlock", help="First end what a dead build left running.")]


def names_of(kind: Literal["target", "check"]) -> Any:
    """The argument for them; the shell offers what is declared."""
    offered = offering(lambda context: getattr(read_workspace(context), f"{kind}s"))
    return typer.Argument(metavar=f"[{kind.upper()}...]", help="All, if none is named.", autocompletion=offered)


@dataclass
class Build:
    """What has been done so far; also the answer of a build that was stopped on the way."""

    effect: Effect = "unchanged"
    targets: list[Done] = field(default_factory=list)

    def lines(self) -> list[str]:
        lines = [line for target in self.targets for line in target.lines()]
        return lines or [f"There are no targets in {WORKSPACE_FILE}."]


def build(context: Context, names: list[str], jobs: int | None, *, force_unlock: bool) -> Build:
    choose("target", names, read_workspace(context).targets)  # what is wrong is an error before anything is made
    with locked(context, "exclusive", force_unlock=force_unlock) as place:
        return build_targets(place, read_workspace(context), names, jobs)


def forecast(context: Context, names: list[str]) -> Build:
    """What would be built, and why. Takes no lock, makes nothing."""
    planned = plan(read_workspace(context), names, Outputs(context.workspace, context.signals.check))
    stale = {name: target.reason for name, target in planned.items() if target.reason is not None}
    targets = [Done(name, "stale" if name in stale else "up_to_date", stale.get(name)) for name in planned]
    return Build("updated" if stale else "unchanged", targets)


def build_targets(place: Workplace, declared: Jobs, names: list[str], jobs: int | None) -> Build:
    """Bring these targets, and what they need, up to date."""
    context, result = place.context, Build()
    with Outputs(context.workspace, context.signals.check) as outputs:
        planned = plan(declared, names, outputs)
        with carrying(result):
            _build_stale(place, planned, outputs, jobs, result)
            if result.effect == "updated":
                outputs.prune()
            if failed := [target.name for target in result.targets if target.status == "failed"]:
                raise BuildFailed(count=len(failed), total=len(planned), failed=failed)
    return result


def _build_stale(
    place: Workplace, planned: dict[str, Planned], outputs: Outputs, jobs: int | None, result: Build
) -> None:
    """Each finished target is published at once, so that the next build goes on from there."""
    stale = {name: target for name, target in planned.items() if target.reason is not None}
    done = {name: Done(name, "up_to_date") for name in planned}
    done |= {name: Done(name, "not_started", target.reason) for name, target in stale.items()}
    order = TopologicalSorter({name: stale.keys() & target.job.needs for name, target in stale.items()})
    order.prepare()
    with Progress(place.context, "target", len(planned), len(planned) - len(stale)) as progress:
        runner = Runner(place, outputs, progress, jobs)
        try:
            while True:
                for name in order.get_ready():
                    stale[name] = target = with_needs(stale[name], outputs)
                    if target.job.needs and why_stale(name, target.built, outputs) is None:
                        runner.has_ended(Done(name, "up_to_date"))  # what it needs was built again, and is as it was
                    else:
                        runner.submit(target.job, target.built.inputs)
                if (ended := runner.next_ended()) is None:
                    break
                name = ended.name
                if ended.status == "passed":
                    ended = _publish(ended, runner.directory_of(name), stale[name].built, outputs)
                done[name] = ended if ended.status == "up_to_date" else ended._replace(reason=stale[name].reason)
                progress.ended(done[name], name, ended.status)
                if ended.status != "failed":
                    order.done(name)
                if ended.status == "built":
                    result.effect = "updated"
            for name in [name for name in done if done[name].status == "not_started"]:
                done[name] = done[name]._replace(status="skipped", note="something it needs failed")
        finally:
            for name in progress.running:
                done[name] = done[name]._replace(status="stopped")
            result.targets = [*done.values()]


def _publish(ended: Done, directory: Path, built: Built, outputs: Outputs) -> Done:
    root, check = outputs.workspace, outputs.check
    changed = [path for path, before in built.inputs.items() if digest(root / path, check) != before]
    damaged = [need for need in built.needs if outputs.damage(need) is not None]
    built = built._replace(
        inputs=built.inputs | dict.fromkeys(changed, _UNKNOWN), needs=built.needs | dict.fromkeys(damaged, _UNKNOWN)
    )
    said = [*(f"the input {path}" for path in changed), *(f"what it needs of {need}" for need in damaged)]
    try:
        outputs.publish(ended.name, built, directory)
    except ValueError as error:
        return ended._replace(status="failed", note=str(error))
    except OSError as error:
        return ended._replace(status="failed", note=f"its outputs could not be kept: {error}")
    note = f"{said[0]} changed while it ran, so it will be built again" if said else None
    return ended._replace(status="built", outputs=str(outputs.version_of(ended.name)), note=note)


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
