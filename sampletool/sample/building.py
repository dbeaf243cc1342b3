"""Brings targets up to date: each finished one is published at once, so that the next build goes on from there."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from sampletool.kit.contract.answer import Effect
from sampletool.kit.safety.children import Children
from sampletool.sample.build_plan import Planned, fingerprint, why_stale
from sampletool.sample.content import CHANGED, has_changed
from sampletool.sample.job import Done, Job
from sampletool.sample.output_store import OutputStore
from sampletool.sample.running import Floor, Outcome, run_jobs
from sampletool.sample.staging import collect


@dataclass
class Build:
    """What has been done so far; also the answer of a build that was stopped on the way."""

    effect: Effect = "unchanged"
    targets: list[Done] = field(default_factory=list)
    total: int | None = None
    """How many there are; absent when it was stopped before that was known."""

    def lines(self) -> list[str]:
        if self.total == 0:
            return ["There are no targets in tool.toml."]
        return [line for target in self.targets for line in target.lines()]

    @property
    def failed(self) -> list[str]:
        return [target.name for target in self.targets if target.status == "failed"]


def forecast(planned: dict[str, Planned], build: Build) -> None:
    """What would be built, and why."""
    build.targets = [Done(name, "stale" if to.reason else "up_to_date", to.reason) for name, to in planned.items()]
    build.total = len(planned)
    build.effect = "updated" if any(target.reason for target in planned.values()) else "unchanged"


def build_targets(
    planned: dict[str, Planned],
    store: OutputStore,
    floor: Floor,
    children: Children,
    parallel: int,
    build: Build,
    tell: Callable[[Done, int], None],
) -> None:
    """Runs the stale ones in parallel; `tell` hears of each that is done, and how many are."""
    stale = {name: target for name, target in planned.items() if target.reason is not None}
    done = {name: Done(name, "up_to_date") for name, target in planned.items() if target.reason is None}

    def add(target: Done) -> None:
        done[target.name] = target
        tell(target, len(done))

    def is_done(job: Job) -> bool:
        """What it needs was built again, and came out the same."""
        entry = stale[job.name].entry
        entry["needs"] = {need: store.content_of(need) for need in job.needs}
        if not job.needs or why_stale(job.name, entry, store) is not None:
            return False
        add(Done(job.name, "up_to_date"))
        return True

    def finish(outcome: Outcome) -> bool:
        target = _publish(outcome, stale[outcome.job.name], store, floor)
        add(target)
        if target.status == "built":
            build.effect = "updated"
        return target.status == "built"

    build.total = len(planned)
    inputs_of = {name: target.entry["inputs"] for name, target in stale.items()}
    try:
        jobs = [target.job for target in stale.values()]
        for job in run_jobs(jobs, inputs_of, floor, children, parallel, finish, is_done):
            done[job.name] = Done(job.name, "skipped", stale[job.name].reason, note="something it needs failed")
    finally:
        build.targets = [done.get(name) or Done(name, "stopped", target.reason) for name, target in planned.items()]


def _publish(outcome: Outcome, planned: Planned, store: OutputStore, floor: Floor) -> Done:
    name, note, outputs = outcome.job.name, outcome.note, None
    if outcome.succeeded:
        entry, changed = _as_used(planned.entry, store, floor)
        if changed:
            note = f"{changed[0]} changed while it ran, so it will be built again"
        try:
            made, files = collect(outcome.directory, outcome.job.outputs)
            store.publish(name, fingerprint(name, entry), made, files, entry)
            outputs = str(floor.version_of(name))
        except (ValueError, OSError) as error:
            note = f"its outputs could not be kept: {error}" if isinstance(error, OSError) else str(error)
    done = outcome.told("built" if outputs else "failed")
    return replace(done, reason=planned.reason, outputs=outputs, note=note or done.note)


def _as_used(entry: dict[str, Any], store: OutputStore, floor: Floor) -> tuple[dict[str, Any], list[str]]:
    """The entry, and what changed since it was made: nobody knows which content of that the command has read."""
    inputs = [path for path, look in entry["inputs"].items() if has_changed(floor.workspace / path, look)]
    needs = [need for need in entry["needs"] if store.damage(need) is not None]
    used = {
        "inputs": entry["inputs"] | dict.fromkeys(inputs, CHANGED),
        "needs": entry["needs"] | dict.fromkeys(needs, CHANGED[0]),
    }
    return entry | used, [*(f"the input {path}" for path in inputs), *(f"what it needs of {need}" for need in needs)]
