"""The worker of a queue: claims tasks, runs a command for each, keeps their leases, finishes or gives back.

One coordinator, one thread: it alone talks to the store, the commands only run. A store that is away for less time
than a lease lasts costs nothing: commands go on, and what ended meanwhile is reported when the store is back. A
command whose lease cannot be kept is asked to end before the lease does, and killed when it is over, so that it never
runs beside its successor. What a paused or cut-off worker still writes with its fence is refused by the store.
"""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from urllib.parse import quote

from ..kit.context import Context
from ..kit.contract.expected import EXPECTED, to_tool_error
from ..kit.contract.response import value_text
from ..kit.contract.text import printable_lines
from ..kit.places import state_directory
from ..kit.program import env_variable
from ..kit.safety.children import ChildExit, Children
from ..kit.safety.errors import LockTimeout
from ..kit.safety.orphans import end_orphans
from ..kit.safety.private_directory import private_directory
from .connect import parting_store_of, store_of
from .errors import LeaseLost, StoreBusy, StoreUnavailable, TaskNotFound
from .protocol import Claimed, Fence
from .report import Failure, Worked
from .retry_policy import USUAL_SECONDS
from .values import encode

IDLE_SECONDS = 0.5
"""How long an empty queue is left alone, and a store that is away."""
_CANNOT_START = 126
"""The shell's status for a command that is there and cannot be run."""
_FIRST_DELAY_MS, _LONGEST_DELAY_MS = 1000, 60_000
_BODY_IN_ENVIRONMENT = 16_384
_REMEMBERED_FAILURES = 100
_GRACE_SECONDS = 5.0
"""How long before it is killed a command is asked to end, if the lease is long enough."""
_LEAVING_SECONDS = 10.0
"""How long it takes at the most to end commands that are stubborn, and the store to hear of it."""


@dataclass
class _Running:
    task: Claimed
    claim: Fence
    body_file: Path
    lease_ends_at: float
    is_asked_to_end: bool = False


@dataclass
class Worker:
    context: Context
    url: str | None
    """Of the store, if --store names one."""
    queue: str
    argv: list[str]
    jobs: int
    lease_ms: int
    max_attempts: int
    running: dict[str, _Running] = field(default_factory=dict)
    """By the names of their processes. A command that has lost its lease is killed, and no longer here."""
    unreported: list[tuple[_Running, ChildExit]] = field(default_factory=list)
    """What has ended, and the store does not know yet."""
    last_tries: set[str] = field(default_factory=set)
    """Tasks that have failed for good if this attempt of ours does not succeed, however it ends."""
    away_since: float = inf

    def __post_init__(self) -> None:
        self._scratch = private_directory(self.context.session_directory / self.context.request_id)
        self.context.exit_stack.callback(shutil.rmtree, self._scratch, ignore_errors=True)
        self._lock_path = private_directory(state_directory()) / "workers.lock"  # of all workers of this machine
        hold = self.context.exit_stack.enter_context(
            self.context.hold(self._lock_path, "workers", "shared", USUAL_SECONDS)
        )
        self.children = Children(self.context.signals, hold.descriptors)
        self.store = store_of(self.context, self.url, margin_seconds(self.lease_ms) / 2)
        self.result = Worked(self.queue)
        self._logs = self.context.session_directory / f"tasks-{self.context.request_id}"

    def turn(self) -> None:
        """Report what has ended, fill what is free, keep what is ours.

        Nothing is claimed before all is reported: what ended after its lease would be claimed here once more.
        """
        self._end_in_time()
        for one, ended in [*self.unreported]:
            with self.patiently():
                self._report(one, ended, self._finish if len(self.unreported) > 1 else self._claim)
        if not self.unreported and len(self.running) < self.jobs:
            with self.patiently():
                self._claim()
        for name, one in [*self.running.items()]:
            if name in self.running and one.lease_ends_at - time.monotonic() < self.lease_ms / 1500:
                with self.patiently():
                    self._renew(name)

    def wait(self) -> None:
        """Until a command ends, or it is time for the next turn."""
        seconds = IDLE_SECONDS if not self.unreported or self.away_since < inf else 0.0
        if self.running:
            self._take_ended(min(seconds, self.lease_ms / 20_000))
        else:
            self.context.signals.wait(seconds)
            self.context.signals.check()

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """What the block asks of the store may wait, if the store has been away for less time than a lease lasts."""
        try:
            yield
            self.away_since = inf
        except (StoreUnavailable, StoreBusy, LockTimeout):  # it may pass while a lease lasts
            self.away_since = min(self.away_since, time.monotonic())
            self.context.progress(f"{self.queue}: the store is away; commands go on while their leases last")
            if time.monotonic() - self.away_since >= self.lease_ms / 1000:
                raise
        finally:
            self._end_in_time()

    def prepare_to_leave(self) -> None:
        """A command that could take longer to end than its lease lasts is killed."""
        for name, one in self.running.items():
            if one.lease_ends_at < time.monotonic() + _LEAVING_SECONDS:
                self.children.send_signal(name, signal.SIGKILL)

    def give_all_back(self) -> None:
        """On the way out: nobody has to wait for our leases to end."""
        self.store = parting_store_of(self.context, self.url)
        for one, ended in [*self.unreported, *((one, None) for one in self.running.values())]:
            try:
                if ended is not None:
                    self._report(one, ended, self._finish)
                else:
                    self.store.task_release(*one.claim)
                    self.result.given_back += 1
            except EXPECTED as error:
                self.context.progress(f"{one.task.id}: not given back: {to_tool_error(error).message}")

    def sum_up(self, left: int | None) -> Worked:
        self.result.left = left
        self.result.effect = "updated" if self.result.finished or self.result.given_back else "unchanged"
        self.result.logs = str(self._logs) if self._logs.is_dir() else None
        return self.result

    def end_orphans(self) -> None:
        """A worker that died cannot keep its leases: none of its commands may run beside its successor."""
        for pid in end_orphans(self._lock_path, self.context.signals):
            self.context.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a worker that has died, was ended.")

    def _finish(self, claim: Fence) -> None:
        self.store.task_finish(*claim)

    def _claim(self, *finish: Fence) -> None:
        """As many as can run, and finish those in the same step: one flush of the disk, where two would be needed."""
        ends_at = time.monotonic() + self.lease_ms / 1000
        claim = self.store.task_claim(
            self.queue,
            self.context.session_id,
            lease_ms=self.lease_ms,
            count=self.jobs - len(self.running),
            max_attempts=self.max_attempts,
            finish=finish,
        )
        claimed = {f"{task.id}:{task.generation}": self._new(task, ends_at) for task in claim.tasks}
        self.running |= claimed  # from here on they are given back, also what a signal keeps from being started
        self.last_tries |= {task.id for task in claim.tasks if 0 < self.max_attempts <= task.attempts}
        if any(task.generation > 1 for task in claim.tasks):
            self.end_orphans()
        for name, one in claimed.items():
            one.body_file.write_text(encode(one.task.body))
            try:
                self.children.start(
                    name,
                    self.argv,
                    cwd=self.context.cwd,
                    env=self._environment(one.task, one.body_file),
                    make_log_path=partial(self._log_of, one.task),
                )
                self.context.progress(f"{one.task.id}: started, attempt {one.task.attempts}")
            except OSError as error:
                failure = ChildExit(
                    name=name,
                    exit_code=_CANNOT_START,
                    output_tail=f"{self.argv[0]}: {error.strerror}\n",
                    log_path=None,
                    survivors=(),
                )
                self.unreported.append((self.running.pop(name), failure))

    def _new(self, task: Claimed, ends_at: float) -> _Running:
        return _Running(task, Fence(task.id, task.generation), self._scratch / f"{os.urandom(8).hex()}.json", ends_at)

    def _environment(self, task: Claimed, body_file: Path) -> dict[str, str]:
        """How a command finds its task. A body that an environment cannot carry is in the file only."""
        text = value_text(task.body)
        given = {
            env_variable("SESSION_ID"): self.context.session_id,
            env_variable("STORE"): self.url or os.environ.get(env_variable("STORE")),
            "TOOL_TASK_ID": task.id,
            "TOOL_TASK_GENERATION": str(task.generation),
            "TOOL_TASK_FENCE": f"{task.id}:{task.generation}",
            "TOOL_TASK_FILE": str(body_file),
            "TOOL_TASK_BODY": text if len(text) <= _BODY_IN_ENVIRONMENT and text.isprintable() else None,
        }
        return {name: value for name, value in {**os.environ, **given}.items() if value is not None}

    def _log_of(self, task: Claimed) -> Path:
        self._logs.mkdir(mode=0o700, exist_ok=True)
        return self._logs / f"{quote(task.id, safe='')[:150]}.{task.generation}.log"

    def _renew(self, name: str) -> None:
        one, asked = self.running[name], time.monotonic()
        try:
            self.store.task_renew(*one.claim, lease_ms=self.lease_ms)
            one.lease_ends_at, one.is_asked_to_end = asked + self.lease_ms / 1000, False
        except (LeaseLost, TaskNotFound):
            self._lose(name)

    def _end_in_time(self) -> None:
        """Asked before the lease is over, killed when it is: another worker may have the task then."""
        while self._take_ended(0):
            continue
        for name, one in [*self.running.items()]:
            left = one.lease_ends_at - margin_seconds(self.lease_ms) - time.monotonic()
            if left <= 0:
                self._lose(name)
            elif not one.is_asked_to_end and left <= min(_GRACE_SECONDS, self.lease_ms / 4000):
                one.is_asked_to_end = True
                self.children.send_signal(name, signal.SIGTERM)
                self.context.progress(f"{one.task.id}: the store is away and its lease ends, asked to end")

    def _take_ended(self, within_seconds: float) -> bool:
        """What has ended is reported, however late that is noticed: the store knows whether it still counts."""
        ended = self.children.next_exit(within_seconds)
        if ended is not None and ended.name in self.running:
            self.unreported.append((self.running.pop(ended.name), ended))
        return ended is not None

    def _lose(self, name: str) -> None:
        one = self.running.pop(name)
        self.children.send_signal(name, signal.SIGKILL)
        self.result.lost += 1
        one.body_file.unlink(missing_ok=True)
        self.context.progress(f"{one.task.id}: lease lost, stopped")

    def _report(self, one: _Running, ended: ChildExit, finish: Callable[[Fence], object]) -> None:
        """Tell the store how it ended: now, or when it is back."""
        task, is_done, is_lost = one.task, ended.exit_code == 0, False
        try:
            if is_done:
                finish(one.claim)
            else:
                longest = min(_LONGEST_DELAY_MS, _FIRST_DELAY_MS * 2 ** min(task.attempts - 1, 16))
                self.store.task_release(*one.claim, delay_ms=round(longest * random.uniform(0.5, 1)))
        except (LeaseLost, TaskNotFound):
            is_lost = True
        self.unreported.remove((one, ended))
        one.body_file.unlink(missing_ok=True)
        if is_lost:
            self.result.lost += 1
        elif is_done:
            self.result.finished += 1
            self.last_tries.discard(task.id)
            self.context.progress(f"{task.id}: done")
        else:
            self.result.given_back += 1
            log = str(ended.log_path) if ended.log_path else None
            failure = Failure(task.id, task.attempts, ended.exit_code, printable_lines(ended.output_tail), log)
            self.result.failures = [*self.result.failures, failure][-_REMEMBERED_FAILURES:]
            self.context.progress(f"{task.id}: exit status {ended.exit_code}, given back")


def margin_seconds(lease_ms: int) -> float:
    """How long before its lease ends a command is killed. No question to the store takes more than half of it."""
    return min(10.0, lease_ms / 4000)
