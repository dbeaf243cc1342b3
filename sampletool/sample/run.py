"""Runs commands in parallel under the build lock, each in a fresh directory with what it declared and nothing else.

Declared inputs stand at their workspace-relative paths, as links; the outputs of what it needs under `out/NAME/`.
What was not declared is missing, unless it is looked for by another path. Commands end before the lock is released.
"""

import os
import shutil
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from sampletool.kit.context import AT_ONCE, Context
from sampletool.kit.contract.answer import UNTRUSTED
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.file_errors import from_os_error
from sampletool.kit.contract.lock_held import LockHeld
from sampletool.kit.program import variable
from sampletool.kit.safety.children import Children, Ended
from sampletool.kit.safety.orphans import end_orphans
from sampletool.kit.safety.places import PRIVATE, make_workspace_directory, private_directory, workspace_lock
from sampletool.sample.progress import Progress
from sampletool.sample.publish import remove
from sampletool.sample.workspace import Job, settings_must_be_right

_PASSED_ON = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME")
_AFTER_FORCE_SECONDS = 2.0
_SHOWN_LINES = 10
_DEEPEST = 100


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
    settings_must_be_right(context)
    path = workspace_lock(context.workspace, "build")
    for pid in end_orphans(path, context.signals) if force_unlock else ():
        context.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a holder that has ended, was ended.")
    patience = _AFTER_FORCE_SECONDS if force_unlock else AT_ONCE
    with _advising_force(), context.hold(path, "build", mode, patience) as hold, _scratch(context, mode) as scratch:
        children = Children(context.signals, hold.descriptors, [path])
        try:
            with children:
                yield Workplace(context, scratch, children)
        finally:
            hold.did_work = children.has_started
            for pid in children.strays:
                context.warn("STRAY_ENDED", f"Process {pid}, which a command had left running, was ended.")


@contextmanager
def carrying(result: object) -> Iterator[None]:
    """An error that ends the block carries what was done before it."""
    try:
        yield
    except (ToolError, OSError) as error:
        stopped = from_os_error(error) if isinstance(error, OSError) else error
        stopped.data = result
        raise stopped from error.__cause__


class Runner:
    """Runs the jobs that are submitted, so many at once."""

    def __init__(self, place: Workplace, progress: Progress, jobs: int | None) -> None:
        self._context, scratch, self._children = place
        self._progress = progress
        self._at_once = jobs or place.context.jobs()
        self._scratch = private_directory(scratch / f"{progress.kind}s")
        self._waiting: deque[tuple[Job, Iterable[str], Mapping[str, Path]]] = deque()
        self._running: set[str] = set()
        self._ended: deque[Done] = deque()
        self._environment = {
            name: value for name, value in os.environ.items() if name in _PASSED_ON or name.startswith(variable(""))
        }

    def directory_of(self, name: str) -> Path:
        return self._scratch / name

    def submit(self, job: Job, inputs: Iterable[str], needs: Mapping[str, Path]) -> None:
        """It sees these inputs of the workspace, and these directories of what it needs."""
        self._waiting.append((job, inputs, needs))

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

    def _start(self, job: Job, inputs: Iterable[str], needs: Mapping[str, Path]) -> None:
        directory = self.directory_of(job.name)
        stage(directory, self._context.workspace, inputs, needs)
        env = self._environment | job.env
        env[variable("WORKSPACE")] = str(self._context.workspace)
        env[variable("SESSION_ID")] = self._context.session_id
        self._progress.started(job.name)
        try:
            self._children.start(job.name, job.run, cwd=directory, env=env, log=lambda: self._logs / f"{job.name}.log")
            self._running.add(job.name)
        except OSError as error:
            note = f"{job.run[0]}: {os.strerror(error.errno or 0).lower()}"
            self._ended.append(Done(job.name, "failed", note=note))

    @cached_property
    def _logs(self) -> Path:
        """Made when there is something to write."""
        logs = private_directory(self._context.session_directory / f"logs-{self._context.request_id}")
        return private_directory(logs / f"{self._progress.kind}s")


def _done(child: Ended) -> Done:
    """Passed or failed."""
    note = f"exit status {child.status}" if child.status else None
    if child.survivors:
        note = f"still running: {', '.join(map(str, child.survivors))}"
    log = str(child.log) if child.log else None
    status: Status = "failed" if child.status or child.survivors else "passed"
    return Done(child.name, status, note=note, exit_status=child.status or None, tail=child.tail or None, log=log)


def stage(directory: Path, workspace: Path, inputs: Iterable[str], needs: Mapping[str, Path]) -> None:
    """Make the directory. It must not be there: what is there belongs to another call."""
    os.mkdir(directory)
    places = {path: workspace / path for path in inputs} | {f"out/{name}": version for name, version in needs.items()}
    for path, leads_to in places.items():
        os.makedirs(os.path.dirname(f"{directory}/{path}"), exist_ok=True)
        os.symlink(leads_to, f"{directory}/{path}")


def collect(directory: Path, outputs: Iterable[str]) -> tuple[Path, list[str]]:
    """A directory with just the declared outputs, and the files in it; ValueError names one that is not there."""
    files: list[str] = []
    if directory.is_symlink():
        raise ValueError("its directory is a link now")
    os.chmod(directory, 0o700)
    for path in outputs:
        above = [f"{directory}/{path[:at]}" for at, char in enumerate(path) if char == "/"]
        if any(map(os.path.islink, above)) or not os.path.lexists(f"{directory}/{path}"):
            raise ValueError(f"it did not write its output {path!r}")
        files += _files_at(f"{directory}/{path}", path)
    if sorted(os.listdir(directory)) == sorted(outputs):
        return directory, sorted(files)  # the usual case, which spares a directory made and one removed
    clean = f"{directory.parent}/.{directory.name}"
    os.mkdir(clean)
    for path in outputs:
        os.makedirs(os.path.dirname(f"{clean}/{path}"), exist_ok=True)
        os.rename(f"{directory}/{path}", f"{clean}/{path}")
    return Path(clean), sorted(files)


def _files_at(found: str, path: str) -> list[str]:
    """The regular files at or below; ValueError if anything else is there."""
    looked = os.lstat(found)
    if stat.S_ISREG(looked.st_mode):
        if looked.st_nlink > 1:  # the other name may be somebody else's, and would be made read-only
            beside = f"{found}.{os.urandom(8).hex()}"  # a name that nobody can have put a link at
            shutil.copy2(found, beside)
            os.replace(beside, found)
        return [path]
    if not stat.S_ISDIR(looked.st_mode):
        raise ValueError(f"its output {path!r} is {'a link' if stat.S_ISLNK(looked.st_mode) else 'not a regular file'}")
    if path.count("/") > _DEEPEST:
        raise ValueError(f"its output {path!r} lies more than {_DEEPEST} directories deep")
    os.chmod(found, looked.st_mode | 0o700)
    names = os.listdir(found)
    return [file for name in names for file in _files_at(f"{found}/{name}", f"{path}/{name}")]


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


@contextmanager
def _advising_force() -> Iterator[None]:
    try:
        yield
    except LockHeld as error:
        holder = error.context.get("holder")
        is_orphaned = holder is not None and holder.state == "orphaned"
        advice = "ends them too" if is_orphaned else "only helps if its process is dead"
        error.suggestion = f"{error.suggestion.rstrip('.')}; --force-unlock {advice}."
        raise
