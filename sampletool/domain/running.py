"""Runs jobs in parallel, each in a staged directory of its own, in the order of their needs."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sampletool.domain.workspace import Job
from sampletool.safety.children import Children, Ended
from sampletool.safety.staging import environment, stage


@dataclass(frozen=True)
class Outcome:
    """How one job ended. `note` says what there is to say beyond its output."""

    job: Job
    directory: Path
    ended: Ended | None
    note: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.ended is not None and self.ended.status == 0


@dataclass(frozen=True)
class Floor:
    """Where jobs run."""

    workspace: Path
    scratch: Path
    session_id: str
    logs: Callable[[], Path]
    """The directory for logs, made when it is asked for."""
    version_of: Callable[[str], Path]
    """The directory of a target's current outputs."""


def _log_of(floor: Floor, name: str) -> Path:
    return floor.logs() / f"{name}.log"


def run_jobs(
    jobs: Iterable[Job],
    inputs_of: Mapping[str, Iterable[str]],
    floor: Floor,
    children: Children,
    parallel: int,
    finish: Callable[[Outcome], bool],
) -> list[Job]:
    """`finish` takes each outcome and says whether what needs it may go on; what may not is returned."""
    waiting = {job.name: job for job in jobs}
    missing = {name: sum(need in waiting for need in job.needs) for name, job in waiting.items()}
    needed_by: dict[str, list[str]] = {name: [] for name in waiting}
    for name, job in waiting.items():
        for need in job.needs:
            if need in waiting:
                needed_by[need].append(name)
    ready = deque(name for name, count in missing.items() if not count)
    running: dict[str, Job] = {}
    skipped: list[Job] = []

    def settle(outcome: Outcome) -> None:
        if not finish(outcome):
            skip(needed_by[outcome.job.name])
            return
        for name in needed_by[outcome.job.name]:
            missing[name] -= 1
            if not missing[name] and name in waiting:
                ready.append(name)

    def skip(names: list[str]) -> None:
        for name in names:
            if name in waiting:
                skipped.append(waiting.pop(name))
                skip(needed_by[name])

    while ready or running:
        while ready and len(running) < parallel:
            job = waiting.pop(ready.popleft())
            directory = floor.scratch / job.name
            stage(directory, floor.workspace, inputs_of[job.name], {need: floor.version_of(need) for need in job.needs})
            env = environment(job.env, floor.workspace, floor.session_id)
            try:
                children.start(job.name, job.run, cwd=directory, env=env, log=partial(_log_of, floor, job.name))
                running[job.name] = job
            except OSError as error:
                settle(Outcome(job, directory, None, f"{job.run[0]}: {os.strerror(error.errno or 0).lower()}"))
        ended = children.next_ended()
        if ended is not None:
            job = running.pop(ended.name)
            settle(Outcome(job, floor.scratch / job.name, ended))
    return skipped
