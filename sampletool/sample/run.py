"""Run the commands of targets and checks in parallel, while this process holds the build lock.

Each command runs in a directory of its own. It contains only what the job has declared: links to
its input files at their paths in the workspace, and links to the outputs of the targets that it
needs, in `out/NAME`. So a command that reads something else by a relative path fails, and cannot
give a result that depends on something unknown.

All commands have exited before the lock is released.
"""

import errno
import os
import resource
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Annotated, Literal

from ..kit.context import NO_WAIT_SECONDS, Context
from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.contract.response import UNTRUSTED
from ..kit.contract.text import printable_lines
from ..kit.places import make_workspace_directory, workspace_lock
from ..kit.program import WORKSPACE_FILE, env_variable
from ..kit.safety.children import ChildExit, Children
from ..kit.safety.errors import LockTimeout
from ..kit.safety.orphans import end_orphans
from ..kit.safety.private_directory import PRIVATE_MODE, private_directory
from ..kit.work.progress import Progress
from .plan import Planned, look_again
from .publish import Outputs
from .trees import remove

_PASSED_ON = frozenset(
    {"PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "XDG_CONFIG_HOME", "XDG_STATE_HOME"}
)
"""The variables of the caller that a command gets, in addition to those of the tool."""

_SHOWN_LINES = 10

_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""The errors of the system that go away when another command exits.

There are too many open files or processes, or too little memory.
"""

_RESERVED_FILES = 40
"""How many open files this process needs for itself."""

_FILES_OF_JOB = 3
"""How many open files a running job needs: its output, its exit, and its log."""

Status = Literal[
    "built",
    "up_to_date",
    "stale",
    "skipped",
    "passed",
    "failed",
    "stopped",
    "not_started",
    "would_run",
]


@dataclass(frozen=True)
class JobResult:
    """What the response says about one target or check."""

    name: str
    status: Status
    reason: str | None = None
    """Why a target had to be built."""
    outputs: str | None = None
    """The directory of the outputs that were built."""
    note: str | None = None
    exit_status: int | None = None
    tail: Annotated[str | None, UNTRUSTED] = None
    """The end of what the command has printed."""
    log: str | None = None
    """The file with everything that the command has printed."""

    def lines(self) -> list[str]:
        """Return what a person sees about this job."""
        if self.status == "failed":
            return self._lines_of_failure()
        status = self.status.replace("_", " ")
        explanation = self.reason if self.note is None else self.note
        if explanation is None:
            return [f"{self.name}: {status}"]
        return [f"{self.name}: {status} ({explanation})"]

    def _lines_of_failure(self) -> list[str]:
        """Return why the job failed, the end of its output, and where all of the output is."""
        lines = [f"{self.name}: {self.note}"]
        if self.tail is not None:
            lines += [f"    {line}" for line in self.tail.splitlines()[-_SHOWN_LINES:]]
        if self.log is not None:
            lines.append(f"    whole output: {self.log}")
        return lines


def result_lines(results: Iterable[JobResult], kind: str) -> list[str]:
    """Return what a person sees at the end: the jobs that need attention, and a summary.

    The other jobs were shown while they ran. If a job failed, the error is the summary.
    """
    lines = []
    counts: dict[str, int] = {}
    for result in results:
        status = result.status.replace("_", " ")
        counts[status] = counts.get(status, 0) + 1
        if result.status not in ("built", "up_to_date", "passed") or result.note is not None:
            lines += result.lines()
    if not counts:
        return [f"There are no {kind}s in {WORKSPACE_FILE}."]
    if "failed" in counts:
        return lines
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    return [*lines, f"{kind}s: {summary}"]


@dataclass(frozen=True)
class Workplace:
    """Where commands run while this process holds the build lock."""

    context: Context
    scratch: Path
    children: Children
    max_running: int


@contextmanager
def locked(
    context: Context,
    mode: Literal["exclusive", "shared"],
    jobs: int | None,
    *,
    force_unlock: bool,
) -> Iterator[Workplace]:
    """Hold the build lock until the block ends. Read in the block what is to be run."""
    path = workspace_lock(context.workspace, "build")
    if force_unlock:
        for pid in end_orphans(path, context.signals):
            message = (
                f"Process {pid} was terminated. A command that has exited had left it running."
            )
            context.warn("ORPHAN_ENDED", message)
    try:
        with (
            context.hold(path, "build", mode, NO_WAIT_SECONDS) as hold,
            _scratch_directory(context, mode) as scratch,
        ):
            children = Children(context.signals, hold.descriptors, [path])
            try:
                with children:
                    yield Workplace(context, scratch, children, _max_running(context, jobs))
            finally:
                for pid in children.strays:
                    message = f"Process {pid} was terminated. A command had left it running."
                    context.warn("STRAY_ENDED", message)
            if not children.has_started:
                hold.ignore_duration()
    except LockTimeout as error:
        failure = to_tool_error(error)
        hint = f"{failure.suggestion} --force-unlock only helps if the holder has exited."
        raise failure.with_hint(hint) from error


def _max_running(context: Context, jobs: int | None) -> int:
    """Return how many jobs may run at the same time, with the open files that are allowed."""
    if jobs is None:
        jobs = context.jobs()
    max_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if max_files == resource.RLIM_INFINITY:
        return jobs
    # With more jobs, opening an input or a log would fail, and that would end all of them.
    max_jobs = (max_files - _RESERVED_FILES) // _FILES_OF_JOB
    return max(1, min(jobs, max_jobs))


@contextmanager
def reporting(report: Callable[[], object]) -> Iterator[None]:
    """Attach what was done so far to an error that ends the block."""
    try:
        yield
    except EXPECTED as failure:
        raise to_tool_error(failure).with_data(report()) from failure


class JobRun:
    """Runs those jobs that are stale, each after the targets that it needs.

    The outputs of a target are published as soon as it was built. If the run is interrupted, the
    next one continues from there.
    """

    def __init__(
        self,
        place: Workplace,
        kind: str,
        planned: dict[str, Planned],
        outputs: Outputs,
    ) -> None:
        """Prepare the run. `kind` is "target" or "check"."""
        self._context = place.context
        self._children = place.children
        self._max_running = place.max_running
        self._kind = kind
        self._outputs = outputs
        self._directory = place.scratch / f"{kind}s"
        """Where each job has a directory with its name."""
        self._environment = _environment(place.context)
        self._stale = {name: job for name, job in planned.items() if job.reason is not None}
        self._waiting: deque[Planned] = deque()
        """The jobs that can be started, in this order."""
        self._running: dict[str, Planned] = {}
        self._results: dict[str, JobResult] = {}
        for name, job in planned.items():
            status: Status = "up_to_date" if job.reason is None else "not_started"
            self._results[name] = JobResult(name, status, job.reason or None)
        self._order: TopologicalSorter[str] = TopologicalSorter()
        for name, job in self._stale.items():
            self._order.add(name, *(need for need in job.built.needs if need in self._stale))
        total = len(planned)
        self._progress = Progress(place.context, kind, total, done=total - len(self._stale))

    @property
    def results(self) -> list[JobResult]:
        """The results of all jobs so far. After an interruption, they say how far the run came."""
        results = []
        for name, result in self._results.items():
            # Until a job has exited, its result is that it was not started. If it runs when
            # somebody asks, the run was interrupted, and its command is stopped.
            if name in self._running:
                result = replace(result, status="stopped")
            results.append(result)
        return results

    def run(self) -> None:
        """Run all jobs. Raise an error if the run has to stop, but not if a job fails."""
        private_directory(self._directory)
        self._order.prepare()
        with self._progress:
            self._queue_ready_jobs()
            while self._waiting or self._running:
                self._start_waiting_jobs()
                self._wait_for_exit()
                self._queue_ready_jobs()
        for name, result in self._results.items():
            if result.status == "not_started":
                note = "a target that it needs failed"
                self._results[name] = replace(result, status="skipped", note=note)

    def _queue_ready_jobs(self) -> None:
        """Queue the jobs whose needs were built. Those that are no longer stale end here."""
        while names := self._order.get_ready():
            for name in names:
                planned = look_again(self._stale[name], self._outputs)
                if planned.reason is None:
                    self._finish(JobResult(name, "up_to_date"))
                else:
                    self._waiting.append(planned)

    def _start_waiting_jobs(self) -> None:
        while self._waiting and len(self._running) < self._max_running:
            if not self._start(self._waiting[0]):
                return
            self._waiting.popleft()

    def _start(self, planned: Planned) -> bool:
        """Start a job. Return False if there is no room for it until another one has exited.

        A job that cannot be started at all has failed. There is nothing to try again, so return
        True.
        """
        job = planned.job
        directory = self._directory / job.name
        try:
            inputs = self._inputs_of(planned)
        except ValueError as error:
            self._finish(JobResult(job.name, "failed", note=str(error)))
            return True
        needed_outputs = {need: self._outputs.version_of(need) for need in job.needs}
        stage(directory, self._context.workspace, inputs, needed_outputs)
        try:
            self._children.start(
                job.name,
                job.run,
                cwd=directory,
                env={**self._environment, **job.env},
                make_log_path=lambda: self._log_path(job.name),
            )
        except OSError as error:
            # If no other job runs, waiting for one to exit would never end.
            if error.errno in _NO_ROOM and self._running:
                # The next attempt creates it again.
                remove(directory)
                return False
            note = f"{job.run[0]}: {os.strerror(error.errno or 0).lower()}"
            self._finish(JobResult(job.name, "failed", note=note))
            return True
        self._running[job.name] = planned
        self._progress.start(job.name, planned.reason or None)
        return True

    def _inputs_of(self, planned: Planned) -> Iterable[str]:
        """Return the paths of the input files of a job. Raise ValueError if they are not found."""
        is_target = bool(planned.job.outputs)
        if is_target:
            # The plan has found them already, to tell whether the target is stale.
            return planned.built.inputs
        return planned.job.find_inputs(self._context.workspace)

    def _log_path(self, name: str) -> Path:
        """Return the path of a job's log. Called when there is something to write."""
        session = self._context.session_directory
        logs = private_directory(session / f"logs-{self._context.request_id}")
        return logs / f"{self._kind}-{name}.log"

    def _wait_for_exit(self) -> None:
        """Wait until a job exits, or until it is time for a heartbeat."""
        if not self._running:
            return
        self._progress.beat()
        child_exit = self._children.next_exit(self._progress.seconds_to_heartbeat())
        if child_exit is None:
            return
        planned = self._running[child_exit.name]
        result = result_of(child_exit)
        if result.status == "passed" and planned.job.outputs:
            result = self._publish(result, planned)
        del self._running[child_exit.name]
        self._finish(result)

    def _publish(self, result: JobResult, planned: Planned) -> JobResult:
        """Publish the outputs of a target. It has failed if they are not as declared."""
        name = result.name
        try:
            note = self._outputs.publish(name, planned.built, self._directory / name)
        except (ValueError, OSError) as error:
            return replace(result, status="failed", note=f"its outputs cannot be kept: {error}")
        outputs = str(self._outputs.version_of(name))
        return replace(result, status="built", outputs=outputs, note=note)

    def _finish(self, result: JobResult) -> None:
        """Keep the result of a job, and show it.

        If the job has succeeded, the jobs that need it can be started from now on.
        """
        name = result.name
        # The others had to run. The result says why.
        if result.status != "up_to_date":
            result = replace(result, reason=self._stale[name].reason or None)
        self._results[name] = result
        self._progress.finish(name, result.status, result)
        if result.status != "failed":
            self._order.done(name)


def _environment(context: Context) -> dict[str, str]:
    """Return the environment variables that every command of a job gets.

    These are few: a variable that only one user has could change what is built.
    """
    # Such as `TOOL_`, the beginning of each variable of the tool itself
    prefix_of_tool = env_variable("")
    environment = {}
    for name, value in os.environ.items():
        if name in _PASSED_ON or name.startswith(prefix_of_tool):
            environment[name] = value
    environment[env_variable("WORKSPACE")] = str(context.workspace)
    environment[env_variable("SESSION_ID")] = context.session_id
    return environment


def result_of(child_exit: ChildExit) -> JobResult:
    """Return the result of a job whose command has exited: "passed" or "failed"."""
    note = None
    if child_exit.survivors:
        pids = ", ".join(str(pid) for pid in child_exit.survivors)
        note = f"still running: {pids}"
    elif child_exit.exit_code != 0:
        note = f"exit code {child_exit.exit_code}"
    return JobResult(
        name=child_exit.name,
        status="passed" if note is None else "failed",
        note=note,
        exit_status=child_exit.exit_code or None,
        tail=printable_lines(child_exit.output_tail) or None,
        log=str(child_exit.log_path) if child_exit.log_path else None,
    )


def stage(
    directory: Path,
    workspace: Path,
    inputs: Iterable[str],
    needs: Mapping[str, Path],
) -> None:
    """Create the directory of a job, with links to its inputs and to the outputs that it needs.

    Raise FileExistsError if the directory exists already: then it belongs to another command.
    """
    targets = {path: workspace / path for path in inputs}
    for name, version in needs.items():
        targets[f"out/{name}"] = version
    os.mkdir(directory)
    for path, target in targets.items():
        link = f"{directory}/{path}"
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(target, link)


@contextmanager
def _scratch_directory(context: Context, mode: str) -> Iterator[Path]:
    """Create a directory for this command, and remove it at the end of the block.

    It is on the file system of the outputs, so that outputs can be renamed to their places.
    """
    parent = private_directory(make_workspace_directory(context.workspace) / "tmp")
    # No other command runs while this one holds the exclusive lock. So whatever is here was left
    # by a command that was killed.
    if mode == "exclusive":
        for leftover in parent.iterdir():
            remove(leftover)
    directory = parent / f"{context.session_id}.{context.request_id}"
    directory.mkdir(mode=PRIVATE_MODE)
    try:
        yield directory
    finally:
        remove(directory)
