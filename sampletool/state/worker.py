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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import quote

from sampletool.kit.context import Context
from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.lock_held import LockHeld
from sampletool.kit.contract.render import value_text
from sampletool.kit.safety.children import Children, Ended
from sampletool.kit.safety.orphans import end_orphans
from sampletool.state.errors import LeaseLost, StoreUnavailable
from sampletool.state.opening import parting_store_of
from sampletool.state.promises import Claimed, Fence
from sampletool.state.store import Store
from sampletool.state.values import encode
from sampletool.state.worked import Failure, Worked

AWAY = (StoreUnavailable, LockHeld)
"""What may pass while a lease lasts."""
IDLE_SECONDS = 0.5
"""How long an empty queue is left alone, and a store that is away."""
_CANNOT_START = 126
"""The shell's status for a command that is there and cannot be run."""
_FIRST_DELAY_MS, _LONGEST_DELAY_MS = 1000, 60_000
_BODY_IN_ENVIRONMENT = 16_384
_REMEMBERED_FAILURES = 100
_GRACE_SECONDS = 5.0
"""How long before its lease ends a command is asked to end, if the lease is long enough."""
_LEAVING_MS = 15_000
"""A lease that lasts until commands that are stubborn have been ended."""


@dataclass
class _Running:
    task: Claimed
    body_file: Path
    renew_at: float
    lease_ends_at: float
    is_lost: bool = False
    end_at: float | None = None
    """When it is killed, if it has been asked to end."""
    ended: Ended | None = None
    """How it ended, if the store has not been told yet."""


@dataclass
class Worker:
    """One coordinator: it alone talks to the store; the commands only run."""

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
    finished: int = 0
    given_back: int = 0
    lost: int = 0
    failures: list[Failure] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    running: dict[str, _Running] = field(default_factory=dict)
    away_since: float | None = None
    is_leaving: bool = False

    @property
    def logs(self) -> Path:
        return self.context.session_directory / f"tasks-{self.context.request_id}"

    def turn(self) -> bool:
        """Fill what is free, keep what is ours, take what has ended. False if there was nothing to do."""
        try:
            if len(self.running) < self.jobs:
                self._claim()
        except AWAY:
            if not self.is_patient():
                raise
        self._renew()
        for one in list(self.running.values()):
            if one.ended is not None:
                self._settle(one, one.ended)
        if not self.running and self.away_since is None:
            return False
        if all(one.ended for one in self.running.values()):
            self.context.signals.wait(IDLE_SECONDS)
            self.context.signals.check()
            return True
        soonest = min(min(one.renew_at, one.end_at or one.renew_at) for one in self.running.values())
        seconds = max(0.0, min(IDLE_SECONDS, soonest - time.monotonic()))
        if (ended := self.children.next_ended(seconds)) is not None:
            self._settle(self.running[ended.name], ended)
        return True

    def prepare_to_leave(self) -> None:
        """Leases that last until the commands have been ended; one that cannot be had ends its command now."""
        self.store, self.is_leaving = parting_store_of(self.context, self.url), True
        for one in self.running.values():
            is_short = one.lease_ends_at < time.monotonic() + _LEAVING_MS / 1000
            if is_short and one.ended is None and not one.is_lost:
                try:
                    lease_ms = max(self.lease_ms, _LEAVING_MS)
                    self.store.task_renew(one.task.id, one.task.generation, lease_ms=lease_ms)
                except ToolError:
                    self.children.signal(one.task.id, signal.SIGKILL)

    def give_all_back(self) -> None:
        """On the way out: nobody has to wait for our leases to end."""
        for one in list(self.running.values()):
            try:
                if one.ended is not None:
                    self._settle(one, one.ended)
                if one.task.id in self.running:
                    self._close(one)
                    if one.is_lost:
                        self.lost += 1
                        continue
                    self.store.task_release(one.task.id, one.task.generation)
                    self.given_back += 1
            except ToolError as error:
                self.context.tell(f"{one.task.id}: not given back: {error.message}")

    def result(self, left: int | None) -> Worked:
        effect: Effect = "updated" if self.finished or self.given_back else "unchanged"
        logs = str(self.logs) if self.logs.is_dir() else None
        return Worked(self.queue, self.finished, self.given_back, self.lost, self.failures, left, effect, logs)

    def is_patient(self) -> bool:
        """Whether the store has been away for less time than a lease lasts; asked when it just was."""
        now = time.monotonic()
        if self.away_since is None:
            self.away_since = now
            self.context.tell(f"{self.queue}: the store is away; commands go on while their leases last")
        return now - self.away_since < self.lease_ms / 1000

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
        self.away_since = None
        if any(task.attempts > 1 for task in claim.tasks):
            self.end_orphans()
        for task in claim.tasks:
            body_file = self.context.session_directory / self.context.request_id / f"{os.urandom(8).hex()}.json"
            body_file.write_text(encode(task.body))
            one = _Running(task, body_file, asked + self.lease_ms / 3000, asked + self.lease_ms / 1000)
            self.running[task.id] = one
            env = self.environment | environment_of(task, body_file)
            log = self.logs / f"{quote(task.id, safe='')[:150]}.{task.generation}.log"
            try:
                self.children.start(task.id, self.argv, cwd=self.context.cwd, env=env, log=partial(self._log, log))
                self.context.tell(f"{task.id}: started, attempt {task.attempts}")
            except OSError as error:
                self._settle(one, Ended(task.id, _CANNOT_START, f"{self.argv[0]}: {error.strerror}\n", None, ()))

    def end_orphans(self) -> None:
        """A worker that died cannot keep its leases: none of its commands may run beside its successor."""
        for pid in end_orphans(self.lock_path, self.context.signals):
            self.context.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a worker that has died, was ended.")

    def _log(self, path: Path) -> Path:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return path

    def _renew(self) -> None:
        for one in self.running.values():
            now = time.monotonic()
            if one.ended is None and not one.is_lost and now >= one.renew_at:
                try:
                    self.store.task_renew(one.task.id, one.task.generation, lease_ms=self.lease_ms)
                    one.renew_at, one.lease_ends_at = now + self.lease_ms / 3000, now + self.lease_ms / 1000
                    self.away_since = one.end_at = None
                except AWAY:
                    one.renew_at = now + IDLE_SECONDS
                except LeaseLost:
                    self._lose(one)
            self._end_in_time(one)

    def _end_in_time(self, one: _Running) -> None:
        """Asked before the lease is over, killed when it is: whoever has the task then must not be disturbed."""
        now = time.monotonic()
        if one.ended is not None or one.is_lost:
            return
        end_at = one.lease_ends_at - margin_seconds(self.lease_ms)
        if now >= end_at:
            self._lose(one)
        elif one.end_at is None and now >= end_at - min(_GRACE_SECONDS, self.lease_ms / 4000):
            one.end_at = end_at
            self.children.signal(one.task.id, signal.SIGTERM)
            self.context.tell(f"{one.task.id}: the store is away and its lease ends, asked to end")

    def _lose(self, one: _Running) -> None:
        one.is_lost = True
        self.children.signal(one.task.id, signal.SIGKILL)
        self.context.tell(f"{one.task.id}: lease lost, stopped")

    def _settle(self, one: _Running, ended: Ended) -> None:
        """Tell the store how it ended: now, or as soon as the store is back."""
        task = one.task
        is_done = ended.status == 0
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
        except AWAY:
            one.ended = ended
            if not self.is_patient():
                raise
            return
        self.away_since = None
        self._close(one)
        if one.is_lost:
            self.lost += 1
        elif is_done:
            self.finished += 1
            self.context.tell(f"{task.id}: done")
        else:
            self._remember(task, ended)

    def _remember(self, task: Claimed, ended: Ended) -> None:
        self.given_back += 1
        failure = Failure(task.id, task.attempts, ended.status, ended.tail, str(ended.log) if ended.log else None)
        self.failures = [*self.failures, failure][-_REMEMBERED_FAILURES:]
        if 0 < self.max_attempts <= task.attempts:
            self.given_up.append(task.id)
        self.context.tell(f"{task.id}: exit status {ended.status}, given back")

    def _close(self, one: _Running) -> None:
        del self.running[one.task.id]
        one.body_file.unlink(missing_ok=True)


def margin_seconds(lease_ms: int) -> float:
    """No question to the store takes longer, so that a command can be ended before its lease is over."""
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
