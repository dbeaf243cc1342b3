"""Run the commands of targets and checks in parallel, while this process holds the build lock.

A job runs after the targets that it needs. Its command runs in a directory of its own (see
job_directory.py). When the command of a target has succeeded, its outputs are published at once.
"""

import errno
import os
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from graphlib import TopologicalSorter
from pathlib import Path

from ..kit.contract.text import printable_lines
from ..kit.safety.children import ChildExit
from ..kit.safety.private_directory import private_directory
from ..kit.work.progress import Progress
from .build_lock import Workplace
from .job import Kind
from .job_directory import create_job_directory, job_environment
from .job_result import JobResult
from .plan import PlannedJob, plan_again
from .publish import Outputs
from .trees import force_remove

_NO_ROOM = frozenset({errno.EMFILE, errno.ENFILE, errno.EAGAIN, errno.ENOMEM})
"""The errors of the system that go away when another command exits.

There are too many open files or processes, or too little memory.
"""


class _CannotStart(Exception):
    """A job that cannot be started. The message says why."""


class _NoRoom(Exception):
    """A job that can be started later, after another job has exited."""


class JobRun:
    """Runs those jobs that must run, each after the targets that it needs.

    The outputs of a target are published as soon as it was built. If the run is interrupted, the
    next one continues from there.
    """

    def __init__(
        self,
        workplace: Workplace,
        kind: Kind,
        planned: dict[str, PlannedJob],
        outputs: Outputs,
    ) -> None:
        self._context = workplace.context
        self._children = workplace.children
        self._max_running = workplace.max_running
        self._kind = kind
        self._outputs = outputs
        self._environment = job_environment(workplace.context)
        self._directory = workplace.scratch / f"{kind}s"
        """Where each job has a directory with its name."""
        self._to_run = {name: job for name, job in planned.items() if job.must_run}
        self._order = _prepared_order(self._to_run)
        """Knows which jobs can be started, because the targets that they need were built."""
        self._waiting: deque[PlannedJob] = deque()
        """The jobs that can be started, in this order."""
        self._running: dict[str, PlannedJob] = {}
        self._results = {name: _result_before(job) for name, job in planned.items()}
        done = len(planned) - len(self._to_run)
        self._progress = Progress(workplace.context, kind, total=len(planned), done=done)

    @property
    def results(self) -> list[JobResult]:
        """The results of all jobs so far. After an interruption, these show what was done."""
        results = []
        for name, result in self._results.items():
            # Until a job has exited, its result is that it was not started. If it is
            # still running at this point, the run was interrupted, and its command is stopped.
            if name in self._running:
                result = replace(result, status="stopped")
            results.append(result)
        return results

    def run(self) -> None:
        """Run all jobs, and return when the last one has exited.

        If a job fails, its result says so. Raise an error only if the whole run has to stop, for
        example after a signal.
        """
        # Create the directory for the directories of the jobs.
        private_directory(self._directory)
        with self._progress:
            self._queue_ready_jobs()
            while self._waiting or self._running:
                self._start_waiting_jobs()
                self._wait_for_exit()
                self._queue_ready_jobs()
        self._mark_skipped_jobs()

    def _queue_ready_jobs(self) -> None:
        """Queue each job for which all needed targets have now been built.

        If these have the same outputs as before, the job is up to date after all. Then it is not
        queued: it is finished without running its command.
        """
        # _finish() reports a finished job to `_order`, which can make further jobs ready. So ask
        # `_order` again until no more jobs are ready.
        while names := self._order.get_ready():
            for name in names:
                planned = plan_again(self._to_run[name], self._outputs)
                if planned.must_run:
                    self._waiting.append(planned)
                else:
                    self._finish(JobResult(name, "up_to_date"))

    def _mark_skipped_jobs(self) -> None:
        """Change the results of the jobs that never became ready: a needed target has failed."""
        for name, result in self._results.items():
            if result.status == "not_started":
                note = "a target that it needs failed"
                self._results[name] = replace(result, status="skipped", note=note)

    def _start_waiting_jobs(self) -> None:
        """Start jobs until enough of them run, or until there is no room for another one."""
        while self._waiting and len(self._running) < self._max_running:
            planned = self._waiting.popleft()
            try:
                self._start(planned)
            except _NoRoom:
                self._waiting.appendleft(planned)
                return
            except _CannotStart as error:
                self._finish(JobResult(planned.job.name, "failed", note=str(error)))

    def _start(self, planned: PlannedJob) -> None:
        """Start a job. Raise _CannotStart if that is impossible.

        Raise _NoRoom if the system has no room for another process. Then try again after another
        job has exited.
        """
        job = planned.job
        directory = self._directory / job.name
        inputs = self._inputs_of(planned)
        needs = {need: self._outputs.version_directory(need) for need in job.needs}
        create_job_directory(directory, self._context.workspace, inputs, needs)
        try:
            self._children.start(
                job.name,
                job.run,
                cwd=directory,
                env={**self._environment, **job.env},
                make_log_path=lambda: self._make_log_path(job.name),
            )
        except OSError as error:
            # If no other job runs, no exit would ever end the wait.
            if error.errno in _NO_ROOM and self._running:
                # The next attempt creates the directory again.
                force_remove(directory)
                raise _NoRoom from error
            reason = os.strerror(error.errno or 0).lower()
            raise _CannotStart(f"{job.run[0]}: {reason}") from error
        self._running[job.name] = planned
        self._progress.start(job.name, planned.reason)

    def _inputs_of(self, planned: PlannedJob) -> Iterable[str]:
        """Return the paths of a job's input files. Raise _CannotStart if a pattern matches none."""
        if self._kind == "target":
            # The plan has found them already, to tell whether the target is stale.
            return planned.record.inputs
        try:
            return planned.job.find_inputs(self._context.workspace)
        except ValueError as error:
            raise _CannotStart(str(error)) from error

    def _make_log_path(self, name: str) -> Path:
        """Create the directory of the logs, and return the path of a job's log.

        This is called when a job prints something, so that jobs without output leave no log.
        """
        session = self._context.session_directory
        log_directory = private_directory(session / f"logs-{self._context.request_id}")
        return log_directory / f"{self._kind}-{name}.log"

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
        if result.status == "passed" and self._kind == "target":
            result = self._publish(result, planned)
        del self._running[child_exit.name]
        self._finish(result)

    def _publish(self, result: JobResult, planned: PlannedJob) -> JobResult:
        """Publish the outputs of a target whose command has succeeded. Return its new result.

        The target has failed if an output is missing, or is not what the target declares.
        """
        name = result.name
        try:
            note = self._outputs.publish(name, planned.record, self._directory / name)
        except (ValueError, OSError) as error:
            return replace(result, status="failed", note=f"its outputs cannot be kept: {error}")
        outputs = str(self._outputs.version_directory(name))
        return replace(result, status="built", outputs=outputs, note=note)

    def _finish(self, result: JobResult) -> None:
        """Keep the result of a job, and show it.

        If the job has succeeded, the jobs that need it can be started from now on.
        """
        name = result.name
        if result.status != "up_to_date":
            result = replace(result, reason=self._to_run[name].reason)
        self._results[name] = result
        self._progress.finish(name, result.status, result)
        if result.status != "failed":
            self._order.done(name)


def _prepared_order(to_run: dict[str, PlannedJob]) -> TopologicalSorter[str]:
    """Return the order in which these jobs can be started, ready to be asked for the first ones."""
    order: TopologicalSorter[str] = TopologicalSorter()
    for name, planned in to_run.items():
        # Nothing waits for a target that does not run: it is up to date.
        needs = [need for need in planned.record.needs if need in to_run]
        order.add(name, *needs)
    # Required before the first get_ready(). No job can be added afterwards.
    order.prepare()
    return order


def _result_before(planned: PlannedJob) -> JobResult:
    """Return the result of a job before the run begins."""
    if planned.must_run:
        return JobResult(planned.job.name, "not_started", planned.reason)
    return JobResult(planned.job.name, "up_to_date")


def result_of(child_exit: ChildExit) -> JobResult:
    """Return the result of a job whose command has exited: "passed" or "failed"."""
    note = None
    if child_exit.survivors:
        pids = ", ".join(str(pid) for pid in child_exit.survivors)
        note = f"still running: {pids}"
    elif child_exit.exit_code != 0:
        note = f"exit code {child_exit.exit_code}"
    tail = printable_lines(child_exit.output_tail)
    return JobResult(
        name=child_exit.name,
        status="passed" if note is None else "failed",
        note=note,
        exit_status=None if child_exit.exit_code == 0 else child_exit.exit_code,
        tail=None if tail == "" else tail,
        output_bytes=child_exit.output_bytes,
        log=None if child_exit.log_path is None else str(child_exit.log_path),
        log_missing_bytes=None if child_exit.dropped_bytes == 0 else child_exit.dropped_bytes,
    )
