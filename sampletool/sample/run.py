"""Runs commands in parallel under the build lock, each in a fresh directory with what it declared and nothing else.

Declared inputs stand at their workspace-relative paths, as links; the outputs of what it needs under `out/NAME/`.
What was not declared is missing, unless it is looked for by another path. Commands end before the lock is released.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from sampletool.kit.context import AT_ONCE, Context
from sampletool.kit.contract.answer import UNTRUSTED
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.lock_held import LockHeld
from sampletool.kit.program import variable
from sampletool.kit.safety.children import Children, Ended
from sampletool.kit.safety.orphans import end_orphans
from sampletool.kit.safety.places import PRIVATE, make_workspace_directory, private_directory, workspace_lock
from sampletool.sample.progress import Progress
from sampletool.sample.publish import Outputs, remove
from sampletool.sample.workspace import Job

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
_AFTER_FORCE_SECONDS = 2.0
_SHOWN_LINES = 10

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
        lines = [f"{self.name}: {self.status.replace('_', ' ')}" + (f" ({self.reason})" if self.reason else "")]
        if self.status != "passed":
            tail = (self.tail or "").splitlines()[-_SHOWN_LINES:]
            lines += [f"    {line}" for line in (self.note, *tail) if line]
        return [*lines, f"    all of it: {self.log}"] if self.log and self.status == "failed" else lines


class Workplace(NamedTuple):
    """Where commands run while the build lock is held."""

    context: Context
    scratch: Path
    children: Children


@contextmanager
def locked(context: Context, mode: Literal["exclusive", "shared"], *, force_unlock: bool) -> Iterator[Workplace]:
    """Holds the build lock. What is to be run has to be read inside."""
    path = workspace_lock(context.workspace, "build")
    for pid in end_orphans(path, context.signals) if force_unlock else ():
        context.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a holder that has ended, was ended.")
    patience = _AFTER_FORCE_SECONDS if force_unlock else AT_ONCE
    try:
        with context.hold(path, "build", mode, patience) as hold, _scratch(context, mode) as scratch:
            children = Children(context.signals, hold.descriptors, [path])
            try:
                with children:
                    yield Workplace(context, scratch, children)
            finally:
                hold.did_work = children.has_started
                for pid in children.strays:
                    context.warn("STRAY_ENDED", f"Process {pid}, which a command had left running, was ended.")
    except LockHeld as error:
        holder = error.context.get("holder")
        is_orphaned = holder is not None and holder.state == "orphaned"
        advice = "ends them too" if is_orphaned else "only helps if its process is dead"
        error.suggestion = f"{error.suggestion.rstrip('.')}; --force-unlock {advice}."
        raise


@contextmanager
def carrying(result: object) -> Iterator[None]:
    """An error that ends the block carries what was done before it."""
    try:
        yield
    except ToolError as error:
        error.data = result
        raise


class Runner:
    """Runs the jobs that are submitted, so many at once."""

    def __init__(self, place: Workplace, outputs: Outputs, progress: Progress, jobs: int | None) -> None:
        self._context, scratch, self._children = place
        self._outputs = outputs
        self._progress = progress
        self._at_once = jobs or place.context.jobs()
        self._scratch = private_directory(scratch / f"{progress.kind}s")
        self._waiting: deque[tuple[Job, Iterable[str]]] = deque()
        self._running: set[str] = set()
        self._ended: deque[Done] = deque()
        own = variable("")
        self._environment = {
            name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(own)
        }
        self._environment[variable("WORKSPACE")] = str(self._context.workspace)
        self._environment[variable("SESSION_ID")] = self._context.session_id

    def directory_of(self, name: str) -> Path:
        return self._scratch / name

    def submit(self, job: Job, inputs: Iterable[str]) -> None:
        """It sees these inputs of the workspace, and the outputs of what it needs."""
        self._waiting.append((job, inputs))

    def has_ended(self, done: Done) -> None:
        """A job that ended in another way; `next_ended` returns it in its turn."""
        self._ended.append(done)

    def next_ended(self) -> Done | None:
        """Wait for the next job to end; None when all have. A free place goes to the next job first."""
        while True:
            while self._waiting and len(self._running) < self._at_once:
                self._start(*self._waiting.popleft())
            self._progress.beat()
            child = self._children.next_ended(0 if self._ended else self._progress.seconds_to_beat())
            if child is not None:
                self._running.remove(child.name)
                self._ended.append(_done(child))
            elif self._ended:
                return self._ended.popleft()
            elif not self._running:
                return None

    def _start(self, job: Job, inputs: Iterable[str]) -> None:
        directory = self.directory_of(job.name)
        needs = {need: self._outputs.version_of(need) for need in job.needs}
        stage(directory, self._context.workspace, inputs, needs)
        self._progress.started(job.name)
        try:
            log, env = lambda: self._log_of(job.name), self._environment
            self._children.start(job.name, job.run, cwd=directory, env=env, log=log)
            self._running.add(job.name)
        except OSError as error:
            note = f"{job.run[0]}: {os.strerror(error.errno or 0).lower()}"
            self._ended.append(Done(job.name, "failed", note=note))

    def _log_of(self, name: str) -> Path:
        """Asked for when there is something to write."""
        logs = private_directory(self._context.session_directory / f"logs-{self._context.request_id}")
        return private_directory(logs / f"{self._progress.kind}s") / f"{name}.log"


def _done(child: Ended) -> Done:
    """Passed or failed."""
    left = f"still running: {', '.join(map(str, child.survivors))}" if child.survivors else None
    note = left or (f"exit status {child.status}" if child.status else None)
    log = str(child.log) if child.log else None
    done = Done(child.name, "failed" if note else "passed", note=note, exit_status=child.status or None, log=log)
    return done._replace(tail=child.tail or None)


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
    session = everybody / context.session_id
    directory = session / context.request_id
    while not directory.exists():
        with suppress(FileNotFoundError):  # another call of this session has just left, and removed it
            private_directory(session)
            directory.mkdir(mode=PRIVATE)
    try:
        yield directory
    finally:
        remove(directory)
        with suppress(OSError):
            session.rmdir()
