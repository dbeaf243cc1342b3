"""Runs commands in parallel under the build lock, each in a fresh directory with what it declared and nothing else.

Declared inputs stand at their workspace-relative paths, as links; the outputs of what it needs under `out/NAME/`.
What was not declared is missing, unless it is looked for by another path. Commands end before the lock is released.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, TypeVar

from ..kit.context import NO_WAIT_SECONDS, Context
from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.contract.response import UNTRUSTED
from ..kit.contract.text import printable_lines
from ..kit.places import make_workspace_directory, workspace_lock
from ..kit.program import env_variable
from ..kit.safety.children import ChildExit, Children
from ..kit.safety.errors import LockTimeout
from ..kit.safety.orphans import end_orphans
from ..kit.safety.private_directory import PRIVATE_MODE, private_directory
from ..kit.work.progress import Progress
from .plan import Planned, look_again
from .publish import Built, Outputs, remove

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
_SHOWN_LINES = 10

Report = TypeVar("Report")
Status = Literal[
    "built", "up_to_date", "stale", "skipped", "passed", "failed", "stopped", "not_started", "would_run"
]  # fmt: skip


class Done(NamedTuple):
    """What the answer says about one job. `reason`: why a target was stale."""

    name: str
    status: Status
    reason: str | None = None
    outputs: str | None = None
    note: str | None = None
    exit_status: int | None = None
    tail: Annotated[str | None, UNTRUSTED] = None
    log: str | None = None

    def lines(self) -> list[str]:
        first = f"{self.name}: {self.status.replace('_', ' ')}" + (f" ({self.reason})" if self.reason else "")
        others = [self.note]
        if self.status == "failed":
            others += [*(self.tail or "").splitlines()[-_SHOWN_LINES:], self.log and f"all of it: {self.log}"]
        return [first, *(f"    {line}" for line in others if line)]


class Workplace(NamedTuple):
    """Where commands run while the build lock is held."""

    context: Context
    scratch: Path
    children: Children
    at_once: int


@contextmanager
def locked(
    context: Context, mode: Literal["exclusive", "shared"], jobs: int | None, *, force_unlock: bool
) -> Iterator[Workplace]:
    """Holds the build lock. What is to be run has to be read inside."""
    path = workspace_lock(context.workspace, "build")
    for pid in end_orphans(path, context.signals) if force_unlock else ():
        context.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a holder that has ended, was ended.")
    try:
        with context.hold(path, "build", mode, NO_WAIT_SECONDS) as hold, _scratch(context, mode) as scratch:
            children = Children(context.signals, hold.descriptors, [path])
            try:
                with children:
                    yield Workplace(context, scratch, children, jobs or context.jobs())
            finally:
                for pid in children.strays:
                    context.warn("STRAY_ENDED", f"Process {pid}, which a command had left running, was ended.")
            if not children.has_started:
                hold.ignore_duration()
    except LockTimeout as error:
        failure = to_tool_error(error)
        hint = f"{failure.suggestion} --force-unlock only helps if the holder has exited."
        raise failure.with_hint(hint) from error


def run_stale(
    place: Workplace, kind: str, planned: dict[str, Planned], outputs: Outputs, report: Callable[[list[Done]], Report]
) -> Report:
    """Run what is stale, each behind what it needs, and publish its outputs at once: the next call goes on from there.

    An error that ends it carries the report of what was done before.
    """
    stale = {name: job for name, job in planned.items() if job.reason is not None}
    done = {name: Done(name, "up_to_date") for name in planned}
    done |= {name: Done(name, "not_started", job.reason or None) for name, job in stale.items()}
    order = TopologicalSorter({name: stale.keys() & job.built.needs.keys() for name, job in stale.items()})
    order.prepare()
    with Progress(place.context, kind, len(planned), len(planned) - len(stale)) as progress:
        runner = Runner(place, outputs, progress)
        try:
            while True:
                for name in order.get_ready():
                    stale[name] = target = look_again(stale[name], outputs)
                    if target.reason is None:
                        runner.ended.append(Done(name, "up_to_date"))
                    else:
                        runner.waiting.append(target)
                if (ended := runner.next_ended()) is None:
                    break
                name = ended.name
                if ended.status == "passed" and stale[name].job.outputs:
                    ended = _publish(ended, runner.directory / name, stale[name].built, outputs)
                done[name] = ended if ended.status == "up_to_date" else ended._replace(reason=done[name].reason)
                progress.finish(name, ended.status, done[name])
                if ended.status != "failed":
                    order.done(name)
            for name in [name for name in done if done[name].status == "not_started"]:
                done[name] = done[name]._replace(status="skipped", note="something it needs failed")
        except EXPECTED as failure:  # no space for a log, for one
            done |= {name: done[name]._replace(status="stopped") for name in progress.running}
            raise to_tool_error(failure).with_data(report([*done.values()])) from None
    return report([*done.values()])


def _publish(ended: Done, directory: Path, built: Built, outputs: Outputs) -> Done:
    try:
        note = outputs.publish(ended.name, built, directory)
    except (ValueError, OSError) as error:
        return ended._replace(status="failed", note=f"its outputs could not be kept: {error}")
    return ended._replace(status="built", outputs=str(outputs.version_of(ended.name)), note=note)


class Runner:
    """Runs what waits, so many at once."""

    def __init__(self, place: Workplace, outputs: Outputs, progress: Progress) -> None:
        self._context, scratch, self._children, self._at_once = place
        self._outputs = outputs
        self._progress = progress
        self.directory = private_directory(scratch / f"{progress.kind}s")
        """Where each has a directory of its name."""
        self.waiting: deque[Planned] = deque()
        self.ended: deque[Done] = deque()
        """To be returned in turn."""
        self._running: set[str] = set()
        own = env_variable("")
        self._environment = {
            name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(own)
        }
        self._environment[env_variable("WORKSPACE")] = str(self._context.workspace)
        self._environment[env_variable("SESSION_ID")] = self._context.session_id

    def next_ended(self) -> Done | None:
        """Wait for the next job to end; None when all have. A free place goes to the next job first."""
        while True:
            while self.waiting and len(self._running) < self._at_once:
                self._start(self.waiting.popleft())
            if self.ended:
                return self.ended.popleft()
            if not self._running:
                return None
            self._progress.beat()
            if child := self._children.next_exit(self._progress.seconds_to_heartbeat()):
                self._running.remove(child.name)
                self.ended.append(_done(child))

    def _start(self, planned: Planned) -> None:
        job, directory = planned.job, self.directory / planned.job.name
        try:
            inputs = planned.built.inputs if job.outputs else job.find_inputs(self._context.workspace)
        except ValueError as error:
            self.ended.append(Done(job.name, "failed", note=str(error)))
            return
        stage(directory, self._context.workspace, inputs, {need: self._outputs.version_of(need) for need in job.needs})
        self._progress.start(job.name)
        try:
            self._children.start(
                job.name,
                job.run,
                cwd=directory,
                env=self._environment,
                make_log_path=lambda: self._log_of(job.name),
            )
            self._running.add(job.name)
        except OSError as error:
            note = f"{job.run[0]}: {os.strerror(error.errno or 0).lower()}"
            self.ended.append(Done(job.name, "failed", note=note))

    def _log_of(self, name: str) -> Path:
        """Asked for when there is something to write."""
        logs = private_directory(self._context.session_directory / f"logs-{self._context.request_id}")
        return logs / f"{self._progress.kind}-{name}.log"


def _done(child: ChildExit) -> Done:
    """Passed or failed."""
    left = f"still running: {', '.join(map(str, child.survivors))}" if child.survivors else None
    note = left or (f"exit status {child.exit_code}" if child.exit_code else None)
    return Done(
        name=child.name,
        status="failed" if note else "passed",
        note=note,
        exit_status=child.exit_code or None,
        tail=printable_lines(child.output_tail) or None,
        log=str(child.log_path) if child.log_path else None,
    )


def stage(directory: Path, workspace: Path, inputs: Iterable[str], needs: Mapping[str, Path]) -> None:
    """Make the directory. It must not be there: what is there belongs to another call."""
    os.mkdir(directory)
    places = {path: workspace / path for path in inputs} | {f"out/{name}": version for name, version in needs.items()}
    for path, leads_to in places.items():
        os.makedirs(os.path.dirname(f"{directory}/{path}"), exist_ok=True)
        os.symlink(leads_to, f"{directory}/{path}")


@contextmanager
def _scratch(context: Context, mode: str) -> Iterator[Path]:
    """This call's own directory, on the file system of the outputs. Only a holder of the exclusive lock is alone."""
    everybody = private_directory(make_workspace_directory(context.workspace) / "tmp")
    for left_by_killed in everybody.iterdir() if mode == "exclusive" else ():
        remove(left_by_killed)
    directory = everybody / f"{context.session_id}.{context.request_id}"
    directory.mkdir(mode=PRIVATE_MODE)
    try:
        yield directory
    finally:
        remove(directory)
