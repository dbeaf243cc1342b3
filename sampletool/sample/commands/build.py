"""Bring targets up to date, in parallel, while nobody else builds or tests."""

from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Annotated

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
from sampletool.sample.plan import Planned, plan, why_stale
from sampletool.sample.progress import Progress
from sampletool.sample.publish import CHANGED, Built, Outputs, has_changed
from sampletool.sample.run import Done, Runner, Status, Workplace, carrying, collect, locked
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
ForceUnlockOption = Annotated[bool, typer.Option("--force-unlock", help="First end what a dead build left running.")]


@dataclass
class Build:
    """What has been done so far; also the answer of a build that was stopped on the way."""

    effect: Effect = "unchanged"
    targets: list[Done] = field(default_factory=list)
    total: int | None = None
    """How many there are; absent when it was stopped before that was known."""

    def lines(self) -> list[str]:
        if self.total == 0:
            return [f"There are no targets in {WORKSPACE_FILE}."]
        return [line for target in self.targets for line in target.lines()]

    @property
    def failed(self) -> list[str]:
        return [target.name for target in self.targets if target.status == "failed"]


def build(context: Context, names: list[str], jobs: int | None, *, force_unlock: bool) -> Build:
    if names:  # a wrong name makes nothing
        choose("target", names, read_workspace(context).targets)
    result = Build()
    with locked(context, "exclusive", force_unlock=force_unlock) as place:
        build_targets(place, read_workspace(context), names, jobs, result)
    return result


def forecast(context: Context, names: list[str]) -> Build:
    """What would be built, and why. Takes no lock, makes nothing."""
    outputs = Outputs(context.workspace, context.signals.check, writable=False)
    declared = read_workspace(context)
    planned = plan(declared, choose("target", names, declared.targets), outputs)
    targets = [
        Done(name, "stale" if target.reason else "up_to_date", target.reason) for name, target in planned.items()
    ]
    effect: Effect = "updated" if any(target.reason for target in planned.values()) else "unchanged"
    return Build(effect, targets, len(planned))


def build_targets(place: Workplace, declared: Jobs, names: list[str], jobs: int | None, result: Build) -> None:
    """Bring these targets, and what they need, up to date. The result says how far it came, also if it is stopped."""
    context = place.context
    with carrying(result), Outputs(context.workspace, context.signals.check) as outputs:
        planned = plan(declared, choose("target", names, declared.targets), outputs)
        _build_stale(place, planned, outputs, jobs, result)
        if result.effect == "updated":
            outputs.prune()
    if result.failed:
        raise BuildFailed(count=len(result.failed), total=len(result.targets), failed=result.failed, data=result)


def _build_stale(
    place: Workplace, planned: dict[str, Planned], outputs: Outputs, jobs: int | None, result: Build
) -> None:
    """Each finished target is published at once, so that the next build goes on from there."""
    stale = {name: target for name, target in planned.items() if target.reason is not None}
    done = {name: Done(name, "up_to_date") for name in planned if name not in stale}
    result.total = len(planned)
    order = TopologicalSorter({name: set(target.job.needs) & stale.keys() for name, target in stale.items()})
    order.prepare()
    was_stopped = True
    with Progress(place.context, "target", len(planned), len(done)) as progress:
        runner = Runner(place, progress, jobs)
        try:
            while True:
                while ready := order.get_ready():
                    for name in ready:
                        stale[name] = target = _with_needs(stale[name], outputs)
                        if target.job.needs and why_stale(name, target.built, outputs) is None:
                            done[name] = Done(name, "up_to_date")  # what it needs was built again, and is as it was
                            progress.ended(done[name], name, "up_to_date")
                            order.done(name)
                        else:
                            needs = {need: outputs.version_of(need) for need in target.job.needs}
                            runner.submit(target.job, target.built.inputs, needs)
                ended = runner.next_ended()
                if ended is None:
                    break
                name = ended.name
                done[name] = _publish(ended, runner.directory_of(name), stale[name], outputs)
                progress.ended(done[name], name, done[name].status)
                if done[name].status == "built":
                    result.effect = "updated"
                    order.done(name)
            was_stopped = False
        finally:
            for name in stale.keys() - done.keys():
                status: Status = "stopped" if name in progress.running else "not_started" if was_stopped else "skipped"
                note = "something it needs failed" if status == "skipped" else None
                done[name] = Done(name, status, stale[name].reason, note=note)
            result.targets = [done[name] for name in planned]


def _with_needs(target: Planned, outputs: Outputs) -> Planned:
    """The target, with what the outputs of its needs are now that they are built."""
    return target._replace(
        built=target.built._replace(needs={need: outputs.content_of(need) for need in target.job.needs})
    )


def _publish(ended: Done, directory: Path, planned: Planned, outputs: Outputs) -> Done:
    ended = ended._replace(reason=planned.reason)
    if ended.status == "failed":
        return ended
    built, changed = _as_used(planned.built, outputs)
    try:
        made, files = collect(directory, built.wanted)
        outputs.publish(ended.name, built, made, files)
    except ValueError as error:
        return ended._replace(status="failed", note=str(error))
    except OSError as error:
        return ended._replace(status="failed", note=f"its outputs could not be kept: {error}")
    note = f"{changed[0]} changed while it ran, so it will be built again" if changed else None
    return ended._replace(status="built", outputs=str(outputs.version_of(ended.name)), note=note)


def _as_used(built: Built, outputs: Outputs) -> tuple[Built, list[str]]:
    """Also what changed since it was looked at: which content of that the command has read is not known."""
    inputs = [path for path, look in built.inputs.items() if has_changed(outputs.workspace / path, look)]
    needs = [need for need in built.needs if outputs.damage(need) is not None]
    used = built._replace(
        inputs=built.inputs | dict.fromkeys(inputs, CHANGED), needs=built.needs | dict.fromkeys(needs, str(CHANGED[0]))
    )
    return used, [*(f"the input {path}" for path in inputs), *(f"what it needs of {need}" for need in needs)]


def command(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TARGET...]",
            help="All, if none is named.",
            autocompletion=offering(lambda context: read_workspace(context).targets),
        ),
    ] = None,
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
