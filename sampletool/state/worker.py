"""The worker of a queue: claims tasks, runs a command for each, keeps their leases, finishes or gives back.

One coordinator, one thread: it alone talks to the store, the commands only run. A store that is away for less time
than a lease lasts costs nothing: commands go on, and what ended meanwhile is reported when the store is back. A
command whose lease cannot be kept is asked to end before the lease does, and killed when it is over, so that it never
runs beside its successor. What a paused or cut-off worker still writes with its fence is refused by the store.
"""

import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import value_text
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.lock_held import LockHeld
from sampletool.kit.safety.children import Children, Ended
from sampletool.kit.safety.orphans import end_orphans
from sampletool.state.errors import LeaseLost, StoreUnavailable
from sampletool.state.opening import parting_store_of
from sampletool.state.promises import Claimed, Fence
from sampletool.state.store import Store
from sampletool.state.values import encode
from sampletool.state.worked import Failure, Worked

_AWAY = (StoreUnavailable, LockHeld)
"""What may pass while a lease lasts."""
IDLE_SECONDS = 0.5
"""How long an empty queue is left alone, and a store that is away."""
_CANNOT_START = 126
"""The shell's status for a command that is there and cannot be run."""
_FIRST_DELAY_MS, _LONGEST_DELAY_MS = 1000, 60_000
_BODY_IN_ENVIRONMENT = 16_384
_REMEMBERED_FAILURES = 100
_GRACE_SECONDS = 5.0
"""How long before it is killed a command is asked to end, if the lease is long enough."""
_LEAVING_MS = 15_000
"""A lease that lasts until commands that are stubborn have been ended."""


@dataclass
class _Running:
    task: Claimed
    body_file: Path
    lease_ends_at: float
    is_asked_to_end: bool = False
    is_lost: bool = False
    ended: Ended | None = None
    """How it ended, if the store does not know yet."""


@dataclass
class Worker:
    context: Context
    store: Store
    children: Children
    lock_path: Path
    """Of the lock that every worker of this machine and its commands share."""
    url: str | None
    """Of the store, if --store names one."""
    queue: str
    argv: list[str]
    environment: dict[str, str]
    jobs: int
    lease_ms: int
    max_attempts: int
    running: dict[str, _Running] = field(default_factory=dict)
    given_up: list[str] = field(default_factory=list)
    away_since: float | None = None
    is_leaving: bool = False

    def __post_init__(self) -> None:
        self.result = Worked(self.queue)
        self._logs = self.context.session_directory / f"tasks-{self.context.request_id}"

    def turn(self) -> bool:
        """Fill what is free, settle what has ended, keep what is ours. False if nothing runs."""
        if len(self.running) < self.jobs:
            with self.patiently():
                self._claim()
        for one in list(self.running.values()):
            self._end_in_time()
            with self.patiently():
                if one.ended is not None:
                    self._settle(one, one.ended)
                elif not one.is_lost and one.lease_ends_at - time.monotonic() < self.lease_ms / 1500:
                    self._renew(one, self.lease_ms)
        self._end_in_time()
        if all(one.ended for one in self.running.values()):
            if self.running:
                self.pause()
            return bool(self.running)
        if (ended := self.children.next_ended(min(IDLE_SECONDS, self.lease_ms / 20_000))) is not None:
            self.running[ended.name].ended = ended
        return True

    def pause(self) -> None:
        self.context.signals.wait(IDLE_SECONDS)
        self.context.signals.check()

    @contextmanager
    def patiently(self) -> Iterator[None]:
        """What the block asks of the store may wait, if the store has been away for less time than a lease lasts."""
        try:
            yield
            self.away_since = None
        except _AWAY:
            now = time.monotonic()
            if self.away_since is None:
                self.away_since = now
                self.context.tell(f"{self.queue}: the store is away; commands go on while their leases last")
            if self.is_leaving or now - self.away_since >= self.lease_ms / 1000:
                raise

    def prepare_to_leave(self) -> None:
        """Leases that last until the commands have been ended; one that cannot be had ends its command now."""
        self.store, self.is_leaving = parting_store_of(self.context, self.url), True
        for one in self.running.values():
            is_short = one.lease_ends_at < time.monotonic() + _LEAVING_MS / 1000
            if is_short and one.ended is None and not one.is_lost:
                try:
                    self._renew(one, max(self.lease_ms, _LEAVING_MS))
                except ToolError:
                    self.children.signal(one.task.id, signal.SIGKILL)

    def give_all_back(self) -> None:
        """On the way out: nobody has to wait for our leases to end."""
        for one in list(self.running.values()):
            try:
                if one.ended is not None:
                    self._settle(one, one.ended)
                elif not one.is_lost:
                    self.store.task_release(one.task.id, one.task.generation)
                    self.result.given_back += 1
                else:
                    self.result.lost += 1
            except ToolError as error:
                self.context.tell(f"{one.task.id}: not given back: {error.message}")
            one.body_file.unlink(missing_ok=True)

    def sum_up(self, left: int | None) -> Worked:
        self.result.left = left
        self.result.effect = "updated" if self.result.finished or self.result.given_back else "unchanged"
        self.result.logs = str(self._logs) if self._logs.is_dir() else None
        return self.result

    def end_orphans(self) -> None:
        """A worker that died cannot keep its leases: none of its commands may run beside its successor."""
        for pid in end_orphans(self.lock_path, self.context.signals):
            self.context.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a worker that has died, was ended.")

    def _claim(self, *finish: Fence) -> None:
        """As many as can run, and finish those in the same step: one flush of the disk, where two would be needed."""
        asked = time.monotonic()
        claim = self.store.task_claim(
            self.queue,
            self.context.session_id,
            lease_ms=self.lease_ms,
            count=self.jobs - len(self.running) + len(finish),
            max_attempts=self.max_attempts,
            finish=finish,
        )
        if any(task.attempts > 1 for task in claim.tasks):
            self.end_orphans()
        for task in claim.tasks:
            body_file = self.context.session_directory / self.context.request_id / f"{os.urandom(8).hex()}.json"
            body_file.write_text(encode(task.body))
            one = self.running[task.id] = _Running(task, body_file, asked + self.lease_ms / 1000)
            env = self.environment | environment_of(task, body_file)
            try:
                self.children.start(task.id, self.argv, cwd=self.context.cwd, env=env, log=partial(self._log_of, task))
                self.context.tell(f"{task.id}: started, attempt {task.attempts}")
            except OSError as error:
                one.ended = Ended(task.id, _CANNOT_START, f"{self.argv[0]}: {error.strerror}\n", None, ())

    def _log_of(self, task: Claimed) -> Path:
        self._logs.mkdir(mode=0o700, exist_ok=True)
        return self._logs / f"{quote(task.id, safe='')[:150]}.{task.generation}.log"

    def _renew(self, one: _Running, lease_ms: int) -> None:
        asked = time.monotonic()
        try:
            self.store.task_renew(one.task.id, one.task.generation, lease_ms=lease_ms)
            one.lease_ends_at, one.is_asked_to_end = asked + lease_ms / 1000, False
        except LeaseLost:
            self._lose(one)

    def _end_in_time(self) -> None:
        """Asked before the lease is over, killed when it is: another worker may have the task then."""
        for one in self.running.values():
            left = one.lease_ends_at - margin_seconds(self.lease_ms) - time.monotonic()
            if one.ended is not None or one.is_lost:
                continue
            if left <= 0:
                self._lose(one)
            elif not one.is_asked_to_end and left <= min(_GRACE_SECONDS, self.lease_ms / 4000):
                one.is_asked_to_end = True
                self.children.signal(one.task.id, signal.SIGTERM)
                self.context.tell(f"{one.task.id}: the store is away and its lease ends, asked to end")

    def _lose(self, one: _Running) -> None:
        one.is_lost = True
        self.children.signal(one.task.id, signal.SIGKILL)
        self.context.tell(f"{one.task.id}: lease lost, stopped")

    def _settle(self, one: _Running, ended: Ended) -> None:
        """Tell the store how it ended: now, or when it is back."""
        task, is_done = one.task, ended.status == 0
        try:
            if is_done and self.is_leaving:
                self.store.task_finish(task.id, task.generation)
            elif is_done:
                self._claim(Fence(task.id, task.generation))
            elif not one.is_lost:
                longest = min(_LONGEST_DELAY_MS, _FIRST_DELAY_MS * 2 ** min(task.attempts - 1, 16))
                self.store.task_release(task.id, task.generation, delay_ms=round(longest * random.uniform(0.5, 1)))
            one.is_lost = one.is_lost and not is_done
        except LeaseLost:
            one.is_lost = True
        del self.running[task.id]
        one.body_file.unlink(missing_ok=True)
        if one.is_lost:
            self.result.lost += 1
        elif is_done:
            self.result.finished += 1
            self.context.tell(f"{task.id}: done")
        else:
            self.result.given_back += 1
            failure = Failure(task.id, task.attempts, ended.status, ended.tail, str(ended.log) if ended.log else None)
            self.result.failures = [*self.result.failures, failure][-_REMEMBERED_FAILURES:]
            if 0 < self.max_attempts <= task.attempts:
                self.given_up.append(task.id)
            self.context.tell(f"{task.id}: exit status {ended.status}, given back")


def margin_seconds(lease_ms: int) -> float:
    """How long before its lease ends a command is killed. No question to the store takes more than half of it."""
    return min(10.0, lease_ms / 4000)


def environment_of(task: Claimed, body_file: Path) -> dict[str, str]:
    """How a command finds its task. A body that an environment cannot carry is in the file only."""
    text = value_text(task.body)
    fits = len(text) <= _BODY_IN_ENVIRONMENT and text.isprintable()
    return {
        "TOOL_TASK_ID": task.id,
        "TOOL_TASK_GENERATION": str(task.generation),
        "TOOL_TASK_FENCE": f"{task.id}:{task.generation}",
        "TOOL_TASK_FILE": str(body_file),
        **({"TOOL_TASK_BODY": text} if fits else {}),
    }
