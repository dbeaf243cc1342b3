"""Runs jobs in parallel, each in a staged directory of its own, in the order of their needs."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from sampletool.kit.safety.children import Children, Ended
from sampletool.sample.job import Done, Job
from sampletool.sample.staging import passed_on, stage


class Outcome(NamedTuple):
    """How one job ended. `note` says what there is to say beyond its output."""

    job: Job
    directory: Path
    ended: Ended | None = None
    note: str | None = None

    @property
    def succeeded(self) -> bool:
        return self.ended is not None and self.ended.status == 0 and not self.ended.survivors

    def told(self, status: str) -> Done:
        if self.ended is None:
            return Done(self.job.name, status, note=self.note)
        exit_status = self.ended.status if status == "failed" else None
        return Done(
            self.job.name,
            status,
            note=self.note or (f"exit status {exit_status}" if exit_status else None),
            exit_status=exit_status,
            tail=self.ended.tail or None,
            log=str(self.ended.log) if self.ended.log else None,
        )


class Floor(NamedTuple):
    """Where jobs run."""

    workspace: Path
    scratch: Path
    session_id: str
    logs: Callable[[], Path]
    """The directory for logs, made when it is asked for."""
    version_of: Callable[[str], Path]
    """The directory of a target's current outputs."""


def run_jobs(
    jobs: Iterable[Job],
    inputs_of: Mapping[str, Iterable[str]],
    floor: Floor,
    children: Children,
    parallel: int,
    finish: Callable[[Outcome], bool],
    is_done: Callable[[Job], bool] = lambda job: False,
    *,
    need_each_other: bool = True,
) -> list[Job]:
    """`finish` takes each outcome and says whether what needs it may go on; what may not is returned.

    `is_done` is asked when a job's turn comes: what it needs may have come out as it was before.
    """
    waiting = {job.name: job for job in jobs}
    among = waiting if need_each_other else {}
    order = TopologicalSorter({name: [need for need in job.needs if need in among] for name, job in waiting.items()})
    order.prepare()
    around, ours = passed_on(), {"TOOL_WORKSPACE": str(floor.workspace), "TOOL_SESSION_ID": floor.session_id}
    ready: deque[str] = deque()
    running: dict[str, Job] = {}
    ended: deque[Outcome] = deque()

    def start(job: Job) -> None:
        directory = floor.scratch / job.name
        stage(directory, floor.workspace, inputs_of[job.name], {need: floor.version_of(need) for need in job.needs})
        env = {**around, **job.env, **ours}
        try:
            children.start(job.name, job.run, cwd=directory, env=env, log=lambda: floor.logs() / f"{job.name}.log")
            running[job.name] = job
        except OSError as error:
            reason = os.strerror(error.errno or 0).lower()
            ended.append(Outcome(job, directory, note=f"{job.run[0]}: {reason}"))

    while True:
        ready += order.get_ready()
        while ready and len(running) < parallel:
            job = waiting.pop(ready.popleft())
            if is_done(job):
                order.done(job.name)
                ready += order.get_ready()
            else:
                start(job)
        # Its slot goes to the next at once; finishing has time until nobody waits for a slot.
        child = children.next_ended(within_seconds=0 if ended else None)
        if child is not None:
            note = f"still running: {', '.join(map(str, child.survivors))}" if child.survivors else None
            ended.append(Outcome(running.pop(child.name), floor.scratch / child.name, child, note))
        elif ended:
            outcome = ended.popleft()
            if finish(outcome):
                order.done(outcome.job.name)
        else:
            return list(waiting.values())
