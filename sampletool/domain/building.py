"""Brings targets up to date: each finished one is published at once, so that the next build goes on from there."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sampletool.domain.build_plan import Planned, fingerprint, forget_changed
from sampletool.domain.running import Floor, Outcome, run_jobs
from sampletool.safety.children import Children
from sampletool.safety.output_store import OutputStore
from sampletool.safety.staging import collect


@dataclass(frozen=True)
class Target:
    """What became of one target. `reason` says why it was stale."""

    name: str
    status: str
    reason: str | None = None
    outputs: str | None = None
    note: str | None = None
    exit_status: int | None = None
    tail: str | None = None
    log: str | None = None


@dataclass
class Build:
    """What has been done so far; also the answer of a build that was stopped on the way."""

    effect: str = "unchanged"
    targets: list[Target] = field(default_factory=list)
    total: int | None = None
    """How many there are; absent when it was stopped before that was known."""

    def lines(self) -> list[str]:
        told = []
        for target in self.targets:
            told.append(f"{target.name}: {target.status}" + (f" ({target.reason})" if target.reason else ""))
            told += [f"    {line}" for line in (target.note, *(target.tail or "").splitlines()[-10:]) if line]
            told += [f"    all of it: {target.log}"] if target.log and target.status == "failed" else []
        return told if self.total != 0 else ["There are no targets in tool.toml."]

    @property
    def failed(self) -> list[str]:
        return [target.name for target in self.targets if target.status == "failed"]


def forecast(planned: dict[str, Planned], build: Build) -> None:
    """What would be built, and why."""
    for name, target in planned.items():
        build.targets.append(Target(name, "stale" if target.reason else "up_to_date", target.reason))
    build.total = len(planned)
    build.effect = "updated" if any(target.reason for target in planned.values()) else "unchanged"


def build_targets(
    planned: dict[str, Planned],
    store: OutputStore,
    floor: Floor,
    children: Children,
    parallel: int,
    build: Build,
    tell: Callable[[Target, int], None],
) -> None:
    """Runs the stale ones in parallel; `tell` hears of each that is done, and how many are."""
    stale = {name: target for name, target in planned.items() if target.reason is not None}
    told = {name: Target(name, "up_to_date") for name, target in planned.items() if target.reason is None}

    def finish(outcome: Outcome) -> bool:
        told[outcome.job.name] = target = _publish(outcome, stale[outcome.job.name], store, floor)
        tell(target, len(told))
        if target.status == "built":
            build.effect = "updated"
        return target.status == "built"

    build.total = len(planned)
    inputs_of = {name: target.entry["inputs"] for name, target in stale.items()}
    try:
        jobs = [target.job for target in stale.values()]
        for job in run_jobs(jobs, inputs_of, floor, children, parallel, finish):
            told[job.name] = Target(job.name, "skipped", stale[job.name].reason, note="something it needs failed")
    finally:
        stopped = {name: Target(name, "stopped", target.reason) for name, target in stale.items()}
        build.targets[:] = [told.get(name) or stopped[name] for name in planned]


def _publish(outcome: Outcome, planned: Planned, store: OutputStore, floor: Floor) -> Target:
    name, ended, note = outcome.job.name, outcome.ended, outcome.note
    changed: list[str] = []
    if outcome.succeeded:
        try:
            made, files = collect(outcome.directory, outcome.job.outputs)
            entry = {**planned.entry, "needs": {need: store.content_of(need) for need in outcome.job.needs}}
            changed = forget_changed(entry["inputs"], floor.workspace)
            store.publish(name, fingerprint(name, entry), made, files, entry)
        except ValueError as error:
            note = str(error)
    if ended is not None and ended.survivors:
        note = f"{note or ''} still running: {', '.join(map(str, ended.survivors))}".strip()
    built = outcome.succeeded and note is None
    if built and changed:
        note = f"the input {changed[0]} changed while it ran, so it will be built again"
    return Target(
        name,
        "built" if built else "failed",
        planned.reason,
        outputs=str(floor.version_of(name)) if built else None,
        note=note,
        exit_status=None if built or ended is None else ended.status,
        tail=(ended.tail or None) if ended else None,
        log=str(ended.log) if ended and ended.log else None,
    )
