"""Bring targets up to date, in parallel, while nobody else builds or tests."""

from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Annotated, Any

import typer

from sampletool.kit.completion import offering
from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import NoWorkspace
from sampletool.kit.global_options import DryRunOption
from sampletool.kit.program import WORKSPACE_FILE
from sampletool.sample.commands._options import JobsOption
from sampletool.sample.content import CHANGED, has_changed
from sampletool.sample.errors import BuildFailed, TargetNotFound
from sampletool.sample.plan import Planned, fingerprint, plan, why_stale
from sampletool.sample.progress import Progress
from sampletool.sample.publish import Outputs, collect
from sampletool.sample.run import Done, Ran, Runner, Workplace, carrying, locked
from sampletool.sample.workspace import Jobs, choose, read_workspace

spec = CommandSpec(
    effect="outputs",
    errors=(NoWorkspace, TargetNotFound, BuildFailed),
    locks=("build", "session"),
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
    declared = read_workspace(context)
    outputs = Outputs(context.workspace, context.signals.check, writable=False)
    planned = plan(context.workspace, declared.with_needs(choose("target", names, declared.targets)), outputs)
    targets = [
        Done(name, "stale" if target.reason else "up_to_date", target.reason) for name, target in planned.items()
    ]
    effect: Effect = "updated" if any(target.reason for target in planned.values()) else "unchanged"
    return Build(effect, targets, len(planned))


def build_targets(place: Workplace, declared: Jobs, names: list[str], jobs: int | None, result: Build) -> None:
    """Bring these targets, and what they need, up to date. The result tells how far it came, also if it is stopped."""
    context = place.context
    with carrying(result), Outputs(context.workspace, context.signals.check) as outputs:
        wanted = declared.with_needs(choose("target", names, declared.targets))
        _build_stale(place, plan(context.workspace, wanted, outputs), outputs, jobs, result)
        if result.effect == "updated":
            outputs.prune()
    if result.failed:
        raise BuildFailed(count=len(result.failed), total=len(result.targets), failed=result.failed, data=result)


def _build_stale(
    place: Workplace, planned: dict[str, Planned], outputs: Outputs, jobs: int | None, result: Build
) -> None:
    """Each finished target is published at once, so that the next build goes on from there."""
    stale = {name: target for name, target in planned.items() if target.reason is not None}
    done = {name: Done(name, "up_to_date") for name, target in planned.items() if target.reason is None}
    result.total = len(planned)
    order = TopologicalSorter({name: set(target.job.needs) & stale.keys() for name, target in stale.items()})
    order.prepare()
    was_stopped = True
    with Progress(place.context, "target", len(planned), len(done)) as progress:
        runner = Runner(place, "target", jobs, progress)
        try:
            while True:
                while ready := order.get_ready():
                    for name in ready:
                        if _came_out_the_same(stale[name], outputs):
                            done[name] = Done(name, "up_to_date")
                            progress.ended(done[name], name, "up_to_date")
                            order.done(name)
                        else:
                            job, entry, _ = stale[name]
                            runner.submit(job, entry["inputs"], {need: outputs.version_of(need) for need in job.needs})
                ran = runner.next_ended()
                if ran is None:
                    break
                name = ran.job.name
                done[name] = _publish(ran, stale[name], outputs)
                progress.ended(done[name], name, done[name].status)
                if done[name].status == "built":
                    result.effect = "updated"
                    order.done(name)
            was_stopped = False
        finally:
            for name in stale.keys() - done.keys():
                status, note = ("stopped" if name in progress.running else "not_started"), None
                if not was_stopped:
                    status, note = "skipped", "something it needs failed"
                done[name] = Done(name, status, stale[name].reason, note=note)
            result.targets = [done[name] for name in planned]


def _came_out_the_same(target: Planned, outputs: Outputs) -> bool:
    """Whether what it needs was built again, and is as it was."""
    needs = target.job.needs
    target.entry["needs"] = {need: outputs.content_of(need) for need in needs}
    return bool(needs) and why_stale(target.job.name, target.entry, outputs) is None


def _publish(ran: Ran, planned: Planned, outputs: Outputs) -> Done:
    if not ran.succeeded:
        return ran.done("failed", planned.reason)
    name, note = ran.job.name, None
    entry, changed = _as_used(planned.entry, outputs)
    if changed:
        note = f"{changed[0]} changed while it ran, so it will be built again"
    try:
        made, files = collect(ran.directory, ran.job.outputs)
        outputs.publish(name, fingerprint(name, entry), made, files, entry)
    except ValueError as error:
        return ran.done("failed", planned.reason, note=str(error))
    except OSError as error:
        return ran.done("failed", planned.reason, note=f"its outputs could not be kept: {error}")
    return ran.done("built", planned.reason, str(outputs.version_of(name)), note)


def _as_used(entry: dict[str, Any], outputs: Outputs) -> tuple[dict[str, Any], list[str]]:
    """The entry, and what changed since it was made: which content of that the command has read is not known."""
    inputs = [path for path, look in entry["inputs"].items() if has_changed(outputs.workspace / path, look)]
    needs = [need for need in entry["needs"] if outputs.damage(need) is not None]
    used = {
        "inputs": entry["inputs"] | dict.fromkeys(inputs, CHANGED),
        "needs": entry["needs"] | dict.fromkeys(needs, CHANGED[0]),
    }
    return entry | used, [*(f"the input {path}" for path in inputs), *(f"what it needs of {need}" for need in needs)]


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
