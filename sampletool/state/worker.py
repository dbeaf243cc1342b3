"""The worker of a queue: it claims tasks, runs a command for each, and reports how they ended.

One thread does everything, and it alone talks to the store. The commands are child processes.

**An outage of the store costs nothing** if it is shorter than a lease. Commands continue, and their
results are reported when the store is reachable again.

**A command never runs at the same time as its successor**, as far as this process can prevent it.
If a lease cannot be renewed, the command is asked to exit before the lease expires, and killed a
*margin* before. No request to the store takes longer than half of the margin. All times are on a
clock that also runs while the machine is suspended, because leases expire then, too. If a paused
worker continues and writes with its fence, the store refuses the write.

**A lost reply loses no task.** Each claim has a random id. If its reply is lost, the worker sends
the same claim again, and gets the tasks that it has claimed already. A worker that is interrupted
meanwhile gives them back.

**An attempt counts only if its command was started.** Otherwise, a task with one attempt could fail
without having run.
"""

import os
import random
import secrets
import shutil
import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from urllib.parse import quote

from ..kit.context import Context
from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.contract.response import Effect, value_text
from ..kit.contract.text import printable_lines
from ..kit.places import state_directory
from ..kit.program import env_variable
from ..kit.safety.children import ChildExit, Children
from ..kit.safety.clock import boot_seconds
from ..kit.safety.errors import LockTimeout
from ..kit.safety.private_directory import PRIVATE_MODE, private_directory
from .connect import connect_for_cleanup, connect_for_command
from .errors import LeaseLost, StoreBusy, StoreUnavailable, TaskNotFound
from .protocol import Claim, Claimed, FailedRun, Fence
from .report import FailedAttempt, WorkReport
from .retry_policy import DEFAULT_WAIT_SECONDS
from .values import encode
from .worker_place import LOCK_NAME, WorkerPlace

IDLE_SECONDS = 0.5
"""How long to wait before looking again at an empty queue, or at an unreachable store."""

_CANNOT_START_EXIT_CODE = 126
"""The exit code of a shell for a command that exists but cannot be started."""

_LONGEST_DELAYS_MS = (1000, 2000, 4000, 8000, 16_000, 32_000, 60_000)
"""How long a task is delayed at most after its first failed attempt, its second one, and so on.

The last delay is that of all later attempts, too.
"""

_MAX_BODY_IN_ENVIRONMENT = 16_384
"""How many characters of a body are also in the environment of the command."""

_MAX_ID_IN_FILE_NAME = 150
"""How many characters of a task's id are in the name of the file with its output."""

_MAX_FAILURES = 100
"""How many failed attempts are reported. After more, these are the last ones."""

_LONGEST_GRACE_SECONDS = 5.0
"""How long a command gets to exit before it is killed, unless its lease is shorter than 20 s."""

_LONGEST_MARGIN_SECONDS = 10.0
"""How long before its lease expires a command is killed, unless the lease is shorter than 40 s."""

_LEAVING_SECONDS = 10.0
"""The longest time to end stubborn commands and to report that to the store, on the way out."""

_UNREACHABLE = (StoreUnavailable, StoreBusy, LockTimeout)
"""The errors of a store that cannot be used now. The same request may succeed later."""

_CLAIM_ENDED = (LeaseLost, TaskNotFound)
"""The errors with which the store refuses a claim that is no longer current.

The lease has expired, or the task was cancelled, released or removed.
"""


@dataclass
class _RunningCommand:
    """A command that runs for a task."""

    task: Claimed
    body_file: Path
    lease_ends_at: float
    """On the clock of `boot_seconds`."""

    is_asked_to_exit: bool = False
    has_started: bool = False

    @property
    def claim(self) -> Fence:
        """The claim that the command runs for."""
        return Fence(self.task.id, self.task.generation)

    @property
    def name(self) -> str:
        """The name of the child process: the claim, as the option --fence takes it."""
        return f"{self.task.id}:{self.task.generation}"


@dataclass(frozen=True)
class _EndedCommand:
    """A command that has ended. The store does not know that yet."""

    command: _RunningCommand
    exit: ChildExit


@dataclass(frozen=True)
class _ClaimRequest:
    """A claim that was sent to the store. It is repeated unchanged until a reply arrives."""

    id: str
    """A random text. If the reply is lost, the request is sent again with the same id."""

    count: int
    finishing: _EndedCommand | None
    """A command that has succeeded, and whose task is finished in the same step."""

    requested_at: float
    """On the clock of `boot_seconds`. Leases are counted from here, not from the reply."""

    @property
    def finish(self) -> tuple[Fence, ...]:
        """The claims to finish in the same step."""
        if self.finishing is None:
            return ()
        return (self.finishing.command.claim,)


@dataclass(frozen=True)
class FailedTasks:
    """The tasks of a queue that have failed while a worker ran."""

    count: int
    """How many they are, whichever worker had claimed them."""

    own_ids: list[str]
    """The ids of the tasks that the worker itself had claimed."""

    @property
    def count_elsewhere(self) -> int:
        """How many of the tasks only other workers had claimed."""
        return self.count - len(self.own_ids)


@dataclass(frozen=True)
class WorkOptions:
    """What a worker works on, and how."""

    queue: str
    argv: list[str]
    jobs: int
    """How many commands run at the same time."""

    lease_ms: int
    max_attempts: int
    """The limit for tasks that were added without one of their own. 0 means no limit."""

    store_url: str | None = None
    """The option --store. None if it was not given."""

    @property
    def lease_seconds(self) -> float:
        """How long a lease lasts. The store counts milliseconds, and the worker seconds."""
        return self.lease_ms / 1000


class Worker:
    """A worker of one queue.

    Enter `children` with `with`, and call `turn` and `wait` in turns in this block. Leaving the
    block terminates the commands that still run. Afterwards, `give_all_back` returns their tasks.
    """

    def __init__(self, context: Context, options: WorkOptions) -> None:
        """Create the directory for the bodies of tasks, and take the lock of all workers."""
        self.context = context
        self.options = options

        self.running: dict[str, _RunningCommand] = {}
        """The commands that run or are about to start, by name.

        A command is killed and removed when its lease is lost.
        """

        self.ended: list[_EndedCommand] = []
        """The commands whose end is not reported to the store yet."""

        self.unused: list[Fence] = []
        """The claims whose commands were not started in time. They are to be given back."""

        self.unfinished: set[str] = set()
        """The ids of the tasks that this worker has claimed and not finished: some may have failed.

        Only a worker with --until-empty collects them. Another worker does not report at its end
        which tasks have failed, and it may run for months.
        """

        self.unreachable_since: float | None = None
        """When the store became unreachable, on the clock of `boot_seconds`. None if it has not."""

        self.finished = 0
        self.given_back = 0
        self.lost = 0
        self.failures: list[FailedAttempt] = []
        """The last attempts whose command failed, the oldest first."""

        self._earlier_failures: int | None = None
        """How many tasks of the queue had failed before this worker claimed its first one.

        Only a worker with --until-empty counts them. None if they are not counted.
        """

        self._pending_claim: _ClaimRequest | None = None
        """The claim whose reply has not arrived."""

        scratch = context.session_directory / context.request_id
        self._scratch = private_directory(scratch)
        context.exit_stack.callback(shutil.rmtree, self._scratch, ignore_errors=True)
        self._logs = context.session_directory / f"tasks-{context.request_id}"
        # Shared by all workers of this user. The commands inherit it, and so they can be found
        # after their worker was killed.
        lock_path = private_directory(state_directory()) / LOCK_NAME
        hold = context.exit_stack.enter_context(
            context.hold(lock_path, "workers", "shared", DEFAULT_WAIT_SECONDS)
        )
        self._place = WorkerPlace.of_this_machine(lock_path)
        self.children = Children(context.signals, hold.descriptors)
        self.store = connect_for_command(
            context,
            options.store_url,
            max_seconds=margin_seconds(options.lease_ms) / 2,
        )

    @property
    def is_idle(self) -> bool:
        """Whether no command runs, and everything is reported."""
        return not self.running and not self.ended and not self.unused

    @property
    def is_store_reachable(self) -> bool:
        """Whether the last request to the store got a reply."""
        return self.unreachable_since is None

    def turn(self) -> None:
        """Report what has ended, start commands for new tasks, and renew leases.

        A step that fails because the store is unreachable is tried again in the next turn.
        """
        self._end_commands_in_time()
        if self.unused:
            with self.tolerate_outage():
                self._release_unused()
        if self._pending_claim is None:
            self._report_all()
            self._claim_more()
        else:
            # The store may have given tasks to this worker in the claim whose reply was lost. Their
            # leases are running already, so repeat the claim before reporting anything.
            with self.tolerate_outage():
                self._repeat_claim(self._pending_claim)
        self._renew_due_leases()

    def _report_all(self) -> None:
        """Report all commands that have ended. Those that cannot be reported stay in `ended`."""
        for ended in list(self.ended):
            with self.tolerate_outage():
                self._report(ended)

    def _claim_more(self) -> None:
        """Claim tasks if more commands can run and all ended commands are reported.

        Suppose that a command has succeeded, and its lease has expired before the success was
        reported. A claim before the report could get the same task, and run its command again.
        """
        has_reported_all = not self.ended
        can_run_more = len(self.running) < self.options.jobs
        if not has_reported_all or not can_run_more:
            return
        with self.tolerate_outage():
            self._claim_and_start()

    def _renew_due_leases(self) -> None:
        """Renew each lease of which a third is over."""
        for command in list(self.running.values()):
            # Renewing the other leases may have taken so long that this command was killed.
            has_its_lease = command.name in self.running
            if has_its_lease and self._is_renewal_due(command):
                with self.tolerate_outage():
                    self._renew(command)

    def wait(self) -> None:
        """Wait until a command ends, or until it is time for the next turn."""
        seconds = IDLE_SECONDS
        if self.ended and self.is_store_reachable:
            # A command has ended since the last turn. Report it at once.
            seconds = 0.0
        if self.running:
            # With short leases, look more often: one of them may have to be renewed.
            self._take_exit(min(seconds, self.options.lease_seconds / 20))
        else:
            self.context.signals.wait(seconds)
            self.context.signals.check()

    def has_tasks_left(self) -> bool:
        """Return whether the queue has tasks that are neither done nor failed."""
        return self.store.task_left(self.options.queue, 1) > 0

    def count_earlier_failures(self) -> None:
        """Count the tasks of the queue that have failed before this worker claims its first one.

        Later, `find_failed_tasks` returns only tasks that have failed since.
        """
        self._earlier_failures = self._count_failures()

    def find_failed_tasks(self) -> FailedTasks | None:
        """Return the tasks that have failed since `count_earlier_failures` was called.

        Other workers may have claimed some of them. Call this when the queue has no tasks left.
        Return None if the store is unreachable.
        """
        if self._earlier_failures is None:
            return None
        try:
            own_ids = [task_id for task_id in sorted(self.unfinished) if self._has_failed(task_id)]
            new_failures = self._count_failures() - self._earlier_failures
        except _UNREACHABLE:
            return None
        if new_failures < len(own_ids):
            # Some of the tasks that had failed earlier were retried or removed since, so the
            # difference is too small. At least our own have failed.
            new_failures = len(own_ids)
        return FailedTasks(count=new_failures, own_ids=own_ids)

    def _count_failures(self) -> int:
        """Return how many tasks of the queue have failed, whenever that was."""
        return sum(stats.failed for stats in self.store.task_stats(self.options.queue))

    def _has_failed(self, task_id: str) -> bool:
        """Return whether a task has failed. Only the store knows: the task has its own limit."""
        try:
            return self.store.task_show(task_id).task.status == "failed"
        except TaskNotFound:
            # It has been removed since.
            return False

    @contextmanager
    def tolerate_outage(self) -> Iterator[None]:
        """Ignore the error if the store is unreachable in the block. Commands continue to run.

        Raise the error if the store has been unreachable for as long as a lease lasts: by then,
        all claims of this worker have ended.
        """
        try:
            yield
            self.unreachable_since = None
        except _UNREACHABLE:
            if self.unreachable_since is None:
                self.unreachable_since = boot_seconds()
            outage_seconds = boot_seconds() - self.unreachable_since
            self._notice(
                "the store is unreachable. Running commands continue as long as their leases last"
            )
            if outage_seconds >= self.options.lease_seconds:
                raise
        finally:
            # The block may have taken so long that a lease is about to end.
            self._end_commands_in_time()

    def prepare_to_leave(self) -> None:
        """Kill the commands that could take longer to exit than their leases last.

        Call this before leaving the block of `children`, which asks the other commands to exit.
        """
        has_left_at = boot_seconds() + _LEAVING_SECONDS
        for command in self.running.values():
            if command.lease_ends_at < has_left_at:
                self.children.send_signal(command.name, signal.SIGKILL)

    def give_all_back(self) -> None:
        """Report everything to the store on the way out, so that no worker waits for our leases.

        Each step that fails prints a notice, and the next one follows. Afterwards, `is_settled`
        says whether all of them have succeeded.
        """
        # The signal that ends this worker would end each request of the store it has used so far.
        self.store = connect_for_cleanup(self.context, self.options.store_url)
        with self._notice_failure("the last claim"):
            self._give_pending_claim_back()
        for ended in list(self.ended):
            with self._notice_failure(ended.command.task.id):
                self._report(ended, may_claim=False)
        for command in list(self.running.values()):
            with self._notice_failure(command.task.id):
                self.store.task_release(
                    command.task.id,
                    command.task.generation,
                    is_unused=not command.has_started,
                )
                del self.running[command.name]
                self.given_back += 1
        with self._notice_failure("unused claims"):
            self._release_unused()

    @property
    def is_settled(self) -> bool:
        """Whether the store knows about everything, and this worker knows what the store did."""
        return self.is_idle and self._pending_claim is None

    def report(self, left: int | None, failed: int | None = None) -> WorkReport:
        """Return what this worker did. `left` and `failed` are None if they were not counted."""
        effect: Effect = "unchanged"
        if self.finished or self.given_back:
            effect = "updated"
        logs = None
        if self._logs.is_dir():
            logs = str(self._logs)
        return WorkReport(
            queue=self.options.queue,
            finished=self.finished,
            given_back=self.given_back,
            lost=self.lost,
            failures=self.failures,
            left=left,
            failed=failed,
            effect=effect,
            logs=logs,
        )

    def end_orphaned_commands(self, earlier_places: Iterable[str] = ()) -> None:
        """Terminate commands that still run although their worker was killed.

        No worker renews their leases any more. Look for them where this worker runs, and in
        `earlier_places`. The store returns these with a claim: each is a `WorkerPlace` as text, and
        says on which machine an earlier worker ran, and with which lock file.
        """
        places = {self._place}
        for encoded_place in earlier_places:
            place = WorkerPlace.from_text(encoded_place)
            if place is not None:
                places.add(place)
        for place in places:
            for pid in place.end_orphans(self.context.signals):
                self.context.warn(
                    "ORPHAN_ENDED",
                    f"Process {pid} was terminated. The worker that started it had been killed.",
                )

    # Claims

    def _claim_and_start(self, finishing: _EndedCommand | None = None) -> None:
        """Claim as many tasks as can run, and start their commands.

        `finishing` is a command that has succeeded. Its task is finished in the same step: one
        commit instead of two saves a flush of the disk.
        """
        request = _ClaimRequest(
            id=secrets.token_hex(16),
            count=self.options.jobs - len(self.running),
            finishing=finishing,
            requested_at=boot_seconds(),
        )
        # It stays here if no reply arrives. The next turn then repeats it.
        self._pending_claim = request
        claim = self._send_claim(request)
        if claim is not None:
            self._start_all(request, claim)

    def _repeat_claim(self, request: _ClaimRequest) -> None:
        """Repeat a claim whose reply was lost, and start the commands of its tasks."""
        claim = self._send_claim(request, is_repetition=True)
        if claim is not None:
            self._start_all(request, claim)

    def _give_pending_claim_back(self) -> None:
        """If a claim has got no reply, ask for its tasks, and add their claims to `unused`."""
        if self._pending_claim is None:
            return
        # A repetition that claims nothing new: it only returns what was claimed before.
        request = replace(self._pending_claim, count=0)
        claim = self._send_claim(request, is_repetition=True)
        if claim is not None:
            self.unused += [Fence(task.id, task.generation) for task in claim.tasks]

    def _send_claim(self, request: _ClaimRequest, *, is_repetition: bool = False) -> Claim | None:
        """Send a claim to the store. If it also finishes a task, complete the report of that task.

        Return None if this task could not be finished, because its own claim has ended: the store
        then claims nothing. Raise an error if no reply arrives.
        """
        try:
            claim = self.store.task_claim(
                self.options.queue,
                self.context.session_id,
                lease_ms=self.options.lease_ms,
                count=request.count,
                max_attempts=self.options.max_attempts,
                finish=request.finish,
                request_id=request.id,
                is_repetition=is_repetition,
                place=self._place.to_text(),
            )
        except _CLAIM_ENDED:
            claim = None
        # A refusal is a reply as well, so there is nothing to repeat.
        self._pending_claim = None
        if request.finishing is not None:
            self._complete_report(request.finishing, is_lost=claim is None)
        return claim

    def _release_unused(self) -> None:
        """Give the tasks back whose commands were not started. The attempts do not count."""
        for claim in list(self.unused):
            with suppress(*_CLAIM_ENDED):
                self.store.task_release(claim.task, claim.generation, is_unused=True)
                self.given_back += 1
            self.unused.remove(claim)

    def _start_all(self, request: _ClaimRequest, claim: Claim) -> None:
        """Start a command for each of the tasks that the request has claimed."""
        # Add all commands before the first one is started. A signal may keep the rest from being
        # started, and then `give_all_back` finds their tasks in `running`.
        new_commands = self._add_commands(request, claim.tasks)
        # A new claim of the same task has a higher generation.
        had_earlier_worker = any(task.generation > 1 for task in claim.tasks)
        if had_earlier_worker:
            # That worker may have been killed while its command ran. The command may still run.
            self.end_orphaned_commands(claim.earlier_places)
        # The reply may have taken so long that the new leases are about to end. This removes the
        # commands of such leases from `running`.
        self._end_commands_in_time()
        for command in new_commands:
            has_its_lease = command.name in self.running
            if has_its_lease:
                self._start(command)

    def _add_commands(
        self, request: _ClaimRequest, tasks: Iterable[Claimed]
    ) -> list[_RunningCommand]:
        """Add a command for each task to `running`, and return these commands. Start none."""
        new_commands = []
        for task in tasks:
            command = self._new_command(request, task)
            new_commands.append(command)
            self.running[command.name] = command
        return new_commands

    def _new_command(self, request: _ClaimRequest, task: Claimed) -> _RunningCommand:
        """Return the command for a task that was just claimed, without starting the command."""
        is_until_empty = self._earlier_failures is not None
        if is_until_empty:
            self.unfinished.add(task.id)
        return _RunningCommand(
            task=task,
            body_file=self._scratch / f"{secrets.token_hex(8)}.json",
            lease_ends_at=request.requested_at + self.options.lease_seconds,
        )

    def _start(self, command: _RunningCommand) -> None:
        """Start a command. If that is impossible, treat the command as one that has failed."""
        task = command.task
        command.body_file.write_text(encode(task.body))
        try:
            self.children.start(
                command.name,
                self.options.argv,
                cwd=self.context.cwd,
                env=self._environment(command),
                make_log_path=partial(self._make_log_path, task),
            )
        except OSError as error:
            del self.running[command.name]
            child_exit = self._exit_without_start(command, error)
            self.ended.append(_EndedCommand(command, child_exit))
        else:
            command.has_started = True
            self.context.progress(f"{task.id}: started, attempt {task.attempts}")

    def _exit_without_start(self, command: _RunningCommand, error: OSError) -> ChildExit:
        """Return what a shell would have reported for a program that cannot be started."""
        return ChildExit(
            name=command.name,
            exit_code=_CANNOT_START_EXIT_CODE,
            output_tail=f"{self.options.argv[0]}: {error.strerror}\n",
            log_path=None,
            survivors=(),
        )

    def _environment(self, command: _RunningCommand) -> dict[str, str]:
        """Return the environment of a command, in which it finds its task."""
        task = command.task
        environment = dict(os.environ)
        environment[env_variable("SESSION_ID")] = self.context.session_id
        if self.options.store_url is not None:
            environment[env_variable("STORE")] = self.options.store_url
        environment["TOOL_TASK_ID"] = task.id
        environment["TOOL_TASK_GENERATION"] = str(task.generation)
        environment["TOOL_TASK_FENCE"] = command.name
        environment["TOOL_TASK_FILE"] = str(command.body_file)
        # This process may itself be the command of a worker, and have inherited another body.
        environment.pop("TOOL_TASK_BODY", None)
        # An environment cannot contain NUL, and a very long one prevents the start of a program.
        text = value_text(task.body)
        if len(text) <= _MAX_BODY_IN_ENVIRONMENT and text.isprintable():
            environment["TOOL_TASK_BODY"] = text
        return environment

    def _make_log_path(self, task: Claimed) -> Path:
        """Create the directory of the logs, and return the path of a command's log."""
        self._logs.mkdir(mode=PRIVATE_MODE, exist_ok=True)
        # An id may contain slashes, and a file name has at most 255 bytes.
        id_in_file_name = quote(task.id, safe="")[:_MAX_ID_IN_FILE_NAME]
        return self._logs / f"{id_in_file_name}.{task.generation}.log"

    # Leases

    def _is_renewal_due(self, command: _RunningCommand) -> bool:
        """Return whether a third of the lease is over."""
        seconds_left = command.lease_ends_at - boot_seconds()
        return seconds_left < self.options.lease_seconds * 2 / 3

    def _renew(self, command: _RunningCommand) -> None:
        """Renew the lease of a command. Kill the command if the lease was lost."""
        # Count the new lease from here, as the store may have renewed it long before its reply.
        requested_at = boot_seconds()
        claim = command.claim
        try:
            self.store.task_renew(claim.task, claim.generation, lease_ms=self.options.lease_ms)
        except _CLAIM_ENDED:
            self._lose(command)
            return
        command.lease_ends_at = requested_at + self.options.lease_seconds
        # The command may have been asked to exit before the old lease ended, and still run. Then
        # `_end_in_time` asks it again before the new lease ends.
        command.is_asked_to_exit = False

    def _end_commands_in_time(self) -> None:
        """End each command before its lease expires. Then another worker can have the task."""
        # First take what has ended by itself: it has not lost its lease.
        while self._take_exit(0):
            continue
        for command in list(self.running.values()):
            self._end_in_time(command)

    def _end_in_time(self, command: _RunningCommand) -> None:
        """Ask a command to exit if its lease is about to expire. Kill it if it has not exited."""
        kill_at = command.lease_ends_at - margin_seconds(self.options.lease_ms)
        ask_at = kill_at - _grace_seconds(self.options.lease_ms)
        now = boot_seconds()
        if now >= kill_at:
            self._lose(command)
        elif now >= ask_at and not command.is_asked_to_exit:
            command.is_asked_to_exit = True
            self.children.send_signal(command.name, signal.SIGTERM)
            self._notice_task(
                command.task.id,
                "the store is unreachable. The command must exit before its lease ends",
            )

    def _lose(self, command: _RunningCommand) -> None:
        """Give up a command whose lease is lost or about to end. Kill it if it has started."""
        del self.running[command.name]
        if not command.has_started:
            self.unused.append(command.claim)
            self._notice_task(command.task.id, "the lease is about to end. The task is given back")
            return
        self.children.send_signal(command.name, signal.SIGKILL)
        self.lost += 1
        command.body_file.unlink(missing_ok=True)
        self._notice_task(command.task.id, "the lease was lost, and the command was killed")

    # Results

    def _take_exit(self, within_seconds: float) -> bool:
        """Wait for a command to end, and move it to `ended`. Return whether one has ended.

        Even if its lease has expired, its end is reported: the store knows whether it still counts.
        """
        child_exit = self.children.next_exit(within_seconds)
        if child_exit is None:
            return False
        # A command that was killed because it lost its lease is no longer in `running`.
        command = self.running.pop(child_exit.name, None)
        if command is not None:
            self.ended.append(_EndedCommand(command, child_exit))
        return True

    def _report(self, ended: _EndedCommand, *, may_claim: bool = True) -> None:
        """Tell the store how a command ended. Raise an error if the store is unreachable.

        If nothing else has to be reported, a task is finished in the same step in which the next
        ones are claimed, unless the caller does not want that (`may_claim`).
        """
        has_succeeded = ended.exit.exit_code == 0
        is_last_report = len(self.ended) == 1
        if has_succeeded and is_last_report and may_claim:
            self._claim_and_start(finishing=ended)
            return
        is_lost = False
        try:
            if has_succeeded:
                self.store.task_finish(*ended.command.claim)
            else:
                self._release_failed(ended)
        except _CLAIM_ENDED:
            is_lost = True
        self._complete_report(ended, is_lost=is_lost)

    def _release_failed(self, ended: _EndedCommand) -> None:
        """Give the task of a failed command back, and tell the store how the command failed."""
        failure = FailedRun(
            exit_code=ended.exit.exit_code,
            tail=printable_lines(ended.exit.output_tail),
        )
        self.store.task_release(
            *ended.command.claim,
            delay_ms=_delay_ms(ended.command.task.attempts),
            failure=failure,
        )

    def _complete_report(self, ended: _EndedCommand, *, is_lost: bool) -> None:
        """Count a command whose end the store knows now, and remove the command from `ended`.

        `is_lost` says that the store refused the report, because the claim had ended before.
        """
        task = ended.command.task
        self.ended.remove(ended)
        ended.command.body_file.unlink(missing_ok=True)
        if is_lost:
            self.lost += 1
            self._notice_task(task.id, "too late: another worker may have claimed the task")
        elif ended.exit.exit_code == 0:
            self.finished += 1
            self.unfinished.discard(task.id)
            self._notice_task(task.id, "done")
        else:
            self.given_back += 1
            self._add_failure(ended)

    def _add_failure(self, ended: _EndedCommand) -> None:
        """Remember a failed command for the report of this worker."""
        task = ended.command.task
        log_path = ended.exit.log_path
        failure = FailedAttempt(
            id=task.id,
            attempts=task.attempts,
            exit_status=ended.exit.exit_code,
            tail=printable_lines(ended.exit.output_tail),
            output_bytes=ended.exit.output_bytes,
            log=None if log_path is None else str(log_path),
        )
        self.failures.append(failure)
        del self.failures[:-_MAX_FAILURES]
        self._notice_task(task.id, f"exit code {ended.exit.exit_code}, given back")

    # Notices

    @contextmanager
    def _notice_failure(self, subject: str) -> Iterator[None]:
        """Print an error of the block instead of raising it. `subject` is what it gives back."""
        try:
            yield
        except EXPECTED as error:
            self._notice_task(subject, f"not given back: {to_tool_error(error).message}")

    def _notice(self, text: str) -> None:
        self.context.progress(f"{self.options.queue}: {text}")

    def _notice_task(self, task_id: str, text: str) -> None:
        self.context.progress(f"{task_id}: {text}")


def margin_seconds(lease_ms: int) -> float:
    """Return how long before its lease expires a command is killed: a quarter of a short lease.

    No request to the store takes longer than half of this. So the worker looks at its commands
    again in time, even if a request has just begun.
    """
    lease_seconds = lease_ms / 1000
    return min(_LONGEST_MARGIN_SECONDS, lease_seconds / 4)


def _grace_seconds(lease_ms: int) -> float:
    """Return how long a command has to exit before it is killed: a quarter of a short lease."""
    lease_seconds = lease_ms / 1000
    return min(_LONGEST_GRACE_SECONDS, lease_seconds / 4)


def _delay_ms(attempts: int) -> int:
    """Return how long to delay a task whose attempt with this number has failed.

    The delay is partly random, so that tasks that failed together are not tried again together.
    """
    number_of_delay = min(attempts, len(_LONGEST_DELAYS_MS))
    longest_ms = _LONGEST_DELAYS_MS[number_of_delay - 1]
    return round(longest_ms * random.uniform(0.5, 1))
