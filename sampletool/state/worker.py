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
from math import inf
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
from ..kit.safety.private_directory import private_directory
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

_FIRST_DELAY_MS = 1000
_LONGEST_DELAY_MS = 60_000
"""How long a task is delayed after its first failed attempt, and at most. It doubles each time."""

_MAX_DOUBLINGS = 16
"""More would not change the delay, but could make the number huge."""

_MAX_BODY_IN_ENVIRONMENT = 16_384
"""How many characters of a body are also in the environment of the command."""

_MAX_FAILURES = 100
"""How many failed attempts are reported. After more, these are the last ones."""

_GRACE_SECONDS = 5.0
"""How long a command gets to exit before it is killed, if its lease is long enough."""

_LEAVING_SECONDS = 10.0
"""The longest time to end stubborn commands and to report that to the store, on the way out."""

_LONGEST_MARGIN_SECONDS = 10.0


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
        """The name of the child process."""
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
    own: list[str]
    """Those that the worker itself had claimed."""


@dataclass(frozen=True)
class WorkOptions:
    """What a worker works on, and how."""

    queue: str
    argv: list[str]
    jobs: int
    """How many commands run at the same time."""

    lease_ms: int
    max_attempts: int
    store_url: str | None = None
    """The option --store. None if it was not given."""


class Worker:
    """A worker. Enter `children` before calling `turn`, and leave it before `give_all_back`."""

    def __init__(self, context: Context, options: WorkOptions) -> None:
        """Create the directory for the bodies of tasks, and take the lock of all workers."""
        self.context = context
        self.options = options

        self.running: dict[str, _RunningCommand] = {}
        """The commands that run, by name. One that has lost its lease is killed and removed."""

        self.ended: list[_EndedCommand] = []
        """The commands whose end is not reported to the store yet."""

        self.unused: list[Fence] = []
        """The claims whose commands were not started in time. They are to be given back."""

        self.unfinished: set[str] = set()
        """The tasks that this worker has claimed and not finished. Some of them may have failed.

        Only a worker that has counted the earlier failures keeps them.
        """

        self.unreachable_since: float = inf
        """When the store became unreachable. Infinite while it is reachable."""

        self.finished = 0
        self.given_back = 0
        self.lost = 0
        self.failures: list[FailedAttempt] = []

        self._earlier_failures: int | None = None
        """How many tasks of the queue had failed before. None until this is counted."""

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

    def turn(self) -> None:
        """Report what has ended, start commands for new tasks, and renew leases.

        A step that fails because the store is unreachable is tried again in the next turn.
        """
        self._end_commands_in_time()
        if self.unused:
            with self.tolerate_outage():
                self._release_unused()
        if self._pending_claim is not None:
            # The store may have given tasks to this worker in the claim whose reply was lost. Their
            # leases are running already, so repeat the claim before reporting anything.
            with self.tolerate_outage():
                self._claim_and_start()
        else:
            self._report_all()
            self._claim_more()
        self._renew_due_leases()

    def _report_all(self) -> None:
        """Report all commands that have ended. Those that cannot be reported stay in `ended`."""
        for ended in list(self.ended):
            with self.tolerate_outage():
                self._report(ended)

    def _claim_more(self) -> None:
        """Claim tasks if more commands can run and all ended commands are reported.

        A claim before that could get a task again whose command has succeeded, but whose lease has
        expired before the success was reported.
        """
        if self.ended or len(self.running) >= self.options.jobs:
            return
        with self.tolerate_outage():
            self._claim_and_start()

    def _renew_due_leases(self) -> None:
        """Renew each lease of which a third is over."""
        for command in list(self.running.values()):
            # Renewing the other leases may have taken so long that this command was killed.
            if self._is_renewal_due(command):
                with self.tolerate_outage():
                    self._renew(command)

    def wait(self) -> None:
        """Wait until a command ends, or until it is time for the next turn."""
        seconds = IDLE_SECONDS
        is_reachable = self.unreachable_since == inf
        if self.ended and is_reachable:
            seconds = 0.0
        if self.running:
            self._take_exit(min(seconds, self.options.lease_ms / 20_000))
        else:
            self.context.signals.wait(seconds)
            self.context.signals.check()

    def has_tasks_left(self) -> bool:
        """Return whether the queue has tasks that are neither done nor failed."""
        return self.store.task_left(self.options.queue, 1) > 0

    def has_counted_failures(self) -> bool:
        """Count the tasks that have failed before, once: `find_failed_tasks` is about later ones.

        Return False if the store is unreachable.
        """
        if self._earlier_failures is None:
            with self.tolerate_outage():
                self._earlier_failures = self._count_failures()
        return self._earlier_failures is not None

    def find_failed_tasks(self) -> FailedTasks | None:
        """Return the tasks that have failed since the worker started, when no tasks are left.

        Other workers may have claimed some of them. Return None if the store is unreachable.
        """
        if self._earlier_failures is None:
            return None
        try:
            own = [task for task in sorted(self.unfinished) if self._has_failed(task)]
            # Tasks that had failed earlier may have been retried or removed since.
            new_failures = self._count_failures() - self._earlier_failures
        except (StoreUnavailable, StoreBusy, LockTimeout):
            return None
        return FailedTasks(count=max(new_failures, len(own)), own=own)

    def _count_failures(self) -> int:
        return sum(stats.failed for stats in self.store.task_stats(self.options.queue))

    def _has_failed(self, task: str) -> bool:
        """Return whether a task has failed. Only the store knows: the task has its own limit."""
        try:
            return self.store.task_show(task).task.status == "failed"
        except TaskNotFound:
            # It has been removed since.
            return False

    @contextmanager
    def tolerate_outage(self) -> Iterator[None]:
        """Ignore that the store is unreachable in the block, for as long as a lease lasts."""
        try:
            yield
            self.unreachable_since = inf
        except (StoreUnavailable, StoreBusy, LockTimeout):
            now = boot_seconds()
            self.unreachable_since = min(self.unreachable_since, now)
            self._notice(
                "the store is unreachable. Running commands continue as long as their leases last"
            )
            if now - self.unreachable_since >= self.options.lease_ms / 1000:
                raise
        finally:
            # The block may have taken a while.
            self._end_commands_in_time()

    def prepare_to_leave(self) -> None:
        """Kill the commands that could take longer to exit than their leases last."""
        for command in self.running.values():
            if command.lease_ends_at < boot_seconds() + _LEAVING_SECONDS:
                self.children.send_signal(command.name, signal.SIGKILL)

    def give_all_back(self) -> None:
        """Report everything to the store on the way out, so that no worker waits for our leases.

        Afterwards, `is_settled` says whether that was possible.
        """
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
        return WorkReport(
            queue=self.options.queue,
            finished=self.finished,
            given_back=self.given_back,
            lost=self.lost,
            failures=self.failures,
            left=left,
            failed=failed,
            effect=effect,
            logs=str(self._logs) if self._logs.is_dir() else None,
        )

    def end_orphans(self, earlier_places: Iterable[str] = ()) -> None:
        """End the commands of workers that were killed: they cannot keep their leases.

        Look for them where this worker runs, and in the places that the store has named.
        """
        places = {self._place}
        for text in earlier_places:
            place = WorkerPlace.from_text(text)
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

        `finishing` is a command whose task is finished in the same step. One commit instead of two
        saves a flush of the disk.

        If the reply to an earlier claim is missing, repeat that claim instead.
        """
        request = self._pending_claim
        is_repetition = request is not None
        if request is None:
            request = _ClaimRequest(
                id=secrets.token_hex(16),
                count=self.options.jobs - len(self.running),
                finishing=finishing,
                requested_at=boot_seconds(),
            )
            self._pending_claim = request
        try:
            claim = self._claim(request, is_repetition=is_repetition)
        except (LeaseLost, TaskNotFound):
            # This is a reply: the task could not be finished, so nothing was claimed.
            self._pending_claim = None
            if request.finishing is not None:
                self._settle(request.finishing, is_lost=True)
            return
        self._pending_claim = None
        if request.finishing is not None:
            self._settle(request.finishing, is_lost=False)
        self._start_all(request, claim)

    def _claim(self, request: _ClaimRequest, *, is_repetition: bool) -> Claim:
        return self.store.task_claim(
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

    def _give_pending_claim_back(self) -> None:
        """Find out what the claim without a reply has claimed, and note that it is unused.

        Do not wait for the reply: repeat the claim, so that it claims nothing new.
        """
        if self._pending_claim is None:
            return
        request = replace(self._pending_claim, count=0)
        try:
            claim = self._claim(request, is_repetition=True)
        except (LeaseLost, TaskNotFound):
            claim = None
        self._pending_claim = None
        if request.finishing is not None:
            self._settle(request.finishing, is_lost=claim is None)
        if claim is not None:
            self.unused += [Fence(task.id, task.generation) for task in claim.tasks]

    def _release_unused(self) -> None:
        """Give the tasks back whose commands were not started. The attempts do not count."""
        for claim in list(self.unused):
            with suppress(LeaseLost, TaskNotFound):
                self.store.task_release(claim.task, claim.generation, is_unused=True)
                self.given_back += 1
            self.unused.remove(claim)

    def _start_all(self, request: _ClaimRequest, claim: Claim) -> None:
        """Start a command for each of the tasks that the request has claimed."""
        # Add them all before the first one is started. If a signal arrives in between, they are all
        # given back.
        new_commands = []
        for task in claim.tasks:
            command = _RunningCommand(
                task=task,
                body_file=self._scratch / f"{secrets.token_hex(8)}.json",
                lease_ends_at=request.requested_at + self.options.lease_ms / 1000,
            )
            new_commands.append(command)
            self.running[command.name] = command
            if self._earlier_failures is not None:
                self.unfinished.add(task.id)
        if any(task.generation > 1 for task in claim.tasks):
            # An earlier worker may have been killed while its command runs.
            self.end_orphans(claim.earlier_places)
        # If the reply was lost for a while, the leases may have expired meanwhile.
        self._end_commands_in_time()
        for command in new_commands:
            if command.name in self.running:
                self._start(command)

    def _start(self, command: _RunningCommand) -> None:
        task = command.task
        command.body_file.write_text(encode(task.body))
        try:
            self.children.start(
                command.name,
                self.options.argv,
                cwd=self.context.cwd,
                env=self._environment(command),
                make_log_path=partial(self._log_path, task),
            )
        except OSError as error:
            del self.running[command.name]
            failure = ChildExit(
                name=command.name,
                exit_code=_CANNOT_START_EXIT_CODE,
                output_tail=f"{self.options.argv[0]}: {error.strerror}\n",
                log_path=None,
                survivors=(),
            )
            self.ended.append(_EndedCommand(command, failure))
        else:
            command.has_started = True
            self.context.progress(f"{task.id}: started, attempt {task.attempts}")

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
        environment.pop("TOOL_TASK_BODY", None)
        # An environment cannot contain NUL, and a very long one prevents the start of a program.
        text = value_text(task.body)
        if len(text) <= _MAX_BODY_IN_ENVIRONMENT and text.isprintable():
            environment["TOOL_TASK_BODY"] = text
        return environment

    def _log_path(self, task: Claimed) -> Path:
        """Return the file for the output of a command, and create its directory."""
        self._logs.mkdir(mode=0o700, exist_ok=True)
        shown_id = quote(task.id, safe="")[:150]
        return self._logs / f"{shown_id}.{task.generation}.log"

    # Leases

    def _is_renewal_due(self, command: _RunningCommand) -> bool:
        """Return whether a third of the lease is over, and the command still has its lease."""
        is_running = command.name in self.running
        seconds_left = command.lease_ends_at - boot_seconds()
        # Two thirds of the lease, in seconds.
        renewal_seconds = self.options.lease_ms / 1500
        return is_running and seconds_left < renewal_seconds

    def _renew(self, command: _RunningCommand) -> None:
        requested_at = boot_seconds()
        claim = command.claim
        try:
            self.store.task_renew(claim.task, claim.generation, lease_ms=self.options.lease_ms)
        except (LeaseLost, TaskNotFound):
            self._lose(command)
            return
        command.lease_ends_at = requested_at + self.options.lease_ms / 1000
        command.is_asked_to_exit = False

    def _end_commands_in_time(self) -> None:
        """Ask commands to exit before their leases expire, and kill those that do not.

        When a lease has expired, another worker can have the task.
        """
        # First take what has ended by itself: it has not lost its lease.
        while self._take_exit(0):
            continue
        grace_seconds = min(_GRACE_SECONDS, self.options.lease_ms / 4000)
        for command in list(self.running.values()):
            kill_at = command.lease_ends_at - margin_seconds(self.options.lease_ms)
            seconds_left = kill_at - boot_seconds()
            if seconds_left <= 0:
                self._lose(command)
            elif seconds_left <= grace_seconds and not command.is_asked_to_exit:
                command.is_asked_to_exit = True
                self.children.send_signal(command.name, signal.SIGTERM)
                self._notice_task(
                    command.task.id,
                    "the store is unreachable. The command must exit before its lease ends",
                )

    def _lose(self, command: _RunningCommand) -> None:
        """Kill a command whose lease cannot be kept."""
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
        """Wait for a command to end, and note that. Return whether one has ended.

        However late this is, the end is reported: the store knows whether it still counts.
        """
        child_exit = self.children.next_exit(within_seconds)
        if child_exit is None:
            return False
        command = self.running.pop(child_exit.name, None)
        # A command that was killed because it lost its lease is no longer in `running`.
        if command is not None:
            self.ended.append(_EndedCommand(command, child_exit))
        return True

    def _report(self, ended: _EndedCommand, *, may_claim: bool = True) -> None:
        """Tell the store how a command ended. Raise an error if the store is unreachable.

        If nothing else has to be reported, a task is finished in the same step in which the next
        ones are claimed, unless the caller does not want that (`may_claim`).
        """
        task = ended.command.task
        has_succeeded = ended.exit.exit_code == 0
        is_last_report = len(self.ended) == 1
        if has_succeeded and is_last_report and may_claim:
            self._claim_and_start(finishing=ended)
            return
        is_lost = False
        try:
            if has_succeeded:
                self.store.task_finish(task.id, task.generation)
            else:
                self.store.task_release(
                    task.id,
                    task.generation,
                    delay_ms=_delay_ms(task.attempts),
                    failure=FailedRun(
                        exit_code=ended.exit.exit_code,
                        tail=printable_lines(ended.exit.output_tail),
                    ),
                )
        except (LeaseLost, TaskNotFound):
            is_lost = True
        self._settle(ended, is_lost=is_lost)

    def _settle(self, ended: _EndedCommand, *, is_lost: bool) -> None:
        """Count a command that the store knows about now."""
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
        task = ended.command.task
        failure = FailedAttempt(
            id=task.id,
            attempts=task.attempts,
            exit_status=ended.exit.exit_code,
            tail=printable_lines(ended.exit.output_tail),
            log=str(ended.exit.log_path) if ended.exit.log_path else None,
        )
        self.failures = [*self.failures, failure][-_MAX_FAILURES:]
        self._notice_task(task.id, f"exit code {ended.exit.exit_code}, given back")

    # Notices

    @contextmanager
    def _notice_failure(self, task_id: str) -> Iterator[None]:
        """Print a failure of the block instead of raising it."""
        try:
            yield
        except EXPECTED as error:
            self._notice_task(task_id, f"not given back: {to_tool_error(error).message}")

    def _notice(self, text: str) -> None:
        self.context.progress(f"{self.options.queue}: {text}")

    def _notice_task(self, task_id: str, text: str) -> None:
        self.context.progress(f"{task_id}: {text}")


def margin_seconds(lease_ms: int) -> float:
    """Return how long before its lease expires a command is killed.

    No request to the store takes longer than half of this.
    """
    return min(_LONGEST_MARGIN_SECONDS, lease_ms / 4000)


def _delay_ms(attempts: int) -> int:
    """Return how long a task is delayed that has failed so often.

    The delay is partly random, so that tasks that failed together are not tried again together.
    """
    doublings = min(attempts - 1, _MAX_DOUBLINGS)
    longest = min(_LONGEST_DELAY_MS, _FIRST_DELAY_MS << doublings)
    return round(longest * random.uniform(0.5, 1))
