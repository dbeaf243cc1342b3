"""The worker of a queue: claims tasks, runs a command for each, keeps their leases, finishes or gives back.

One coordinator, one thread: it alone talks to the store, the commands only run. Whoever has lost a lease is stopped
and forgotten, because the task is somebody else's then. What a paused or cut-off worker still writes with its
fence is refused by the store: stopping the command only shortens the mess.
"""

import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sampletool.kit.contract.answer import Effect
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.render import value_text
from sampletool.kit.safety.children import Children, Ended
from sampletool.state.errors import LeaseLost, StoreUnavailable
from sampletool.state.promises import Claimed, Store
from sampletool.state.values import encode

_IDLE_SECONDS = 0.5
_CANNOT_START = 126
"""The shell's status for a command that is there and cannot be run."""
_FIRST_DELAY_MS, _LONGEST_DELAY_MS = 1000, 60_000
_BODY_IN_ENVIRONMENT = 16_384
_REMEMBERED_FAILURES = 100


@dataclass(frozen=True)
class Failure:
    """One attempt that went wrong, and the end of what it said."""

    id: str
    attempts: int
    exit_status: int
    tail: str


@dataclass(frozen=True)
class Worked:
    queue: str
    finished: int
    given_back: int
    lost: int
    """Claims that ended before their command did; it was stopped, and its task is somebody else's."""
    failures: list[Failure]
    left: int | None
    """Tasks of the queue that are neither done nor failed; not counted by a worker that was interrupted."""
    effect: Effect

    def lines(self) -> list[str]:
        left = "" if self.left is None else f", {self.left} left"
        told = f"{self.queue}: {self.finished} finished, {self.given_back} given back, {self.lost} lost{left}"
        return [told, *(f"  {one.id}: exit status {one.exit_status}: {one.tail.strip()}" for one in self.failures)]


@dataclass
class _Running:
    task: Claimed
    body_file: Path
    renew_at: float
    lease_ends_at: float


@dataclass
class Worker:
    """One coordinator: it alone talks to the store; the commands only run."""

    store: Store
    children: Children
    queue: str
    argv: list[str]
    environment: dict[str, str]
    cwd: Path
    scratch: Path
    name: str
    jobs: int
    lease_ms: int
    max_attempts: int
    tell: Callable[[str], None]
    finished: int = 0
    given_back: int = 0
    lost: int = 0
    failures: list[Failure] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    running: dict[str, _Running] = field(default_factory=dict)

    def turn(self) -> bool:
        """Fill what is free, keep what is ours, take what has ended. False if there was nothing to do."""
        self._claim()
        self._renew()
        if not self.running:
            return False
        soonest = min(one.renew_at for one in self.running.values())
        ended = self.children.next_ended(max(0.0, min(_IDLE_SECONDS, soonest - time.monotonic())))
        if ended is not None and ended.name in self.running:
            self._settle(ended)
        return True

    def give_all_back(self) -> None:
        """On the way out: nobody has to wait for our leases to end."""
        for one in list(self.running.values()):
            self._close(one)
            try:
                self.store.task_release(one.task.id, one.task.generation)
                self.given_back += 1
            except ToolError as error:
                self.tell(f"{one.task.id}: not given back: {error.message}")

    def result(self, left: int | None) -> Worked:
        effect: Effect = "updated" if self.finished or self.given_back else "unchanged"
        return Worked(self.queue, self.finished, self.given_back, self.lost, self.failures, left, effect)

    def _claim(self) -> None:
        if (free := self.jobs - len(self.running)) <= 0:
            return
        asked = time.monotonic()
        claim = self.store.task_claim(
            self.queue, self.name, lease_ms=self.lease_ms, count=free, max_attempts=self.max_attempts
        )
        for task in claim.tasks:
            body_file = self.scratch / f"{os.urandom(8).hex()}.json"
            body_file.write_text(encode(task.body))
            one = _Running(task, body_file, asked + self.lease_ms / 3000, asked + self.lease_ms / 1000)
            self.running[task.id] = one
            environment = self.environment | environment_of(task, body_file)
            try:
                self.children.start(task.id, self.argv, cwd=self.cwd, env=environment)
                self.tell(f"{task.id}: started, attempt {task.attempts}")
            except OSError as error:
                self._settle(Ended(task.id, _CANNOT_START, f"{self.argv[0]}: {error.strerror}\n", None, ()))

    def _renew(self) -> None:
        for one in list(self.running.values()):
            now = time.monotonic()
            if now < one.renew_at:
                continue
            try:
                self.store.task_renew(one.task.id, one.task.generation, lease_ms=self.lease_ms)
                one.renew_at, one.lease_ends_at = now + self.lease_ms / 3000, now + self.lease_ms / 1000
            except StoreUnavailable:
                one.renew_at = now + _IDLE_SECONDS
                if time.monotonic() >= one.lease_ends_at:
                    self._drop(one)
            except LeaseLost:
                self._drop(one)

    def _drop(self, one: _Running) -> None:
        """The claim is over: whoever has the task now must not be disturbed."""
        self.children.end(one.task.id)
        self._close(one)
        self.lost += 1
        self.tell(f"{one.task.id}: lease lost, stopped")

    def _settle(self, ended: Ended) -> None:
        one = self.running[ended.name]
        task = one.task
        self._close(one)
        try:
            if ended.status == 0:
                self.store.task_finish(task.id, task.generation)
                self.finished += 1
                self.tell(f"{task.id}: done")
                return
            longest = min(_LONGEST_DELAY_MS, _FIRST_DELAY_MS * 2 ** min(task.attempts - 1, 16))
            self.store.task_release(task.id, task.generation, delay_ms=round(longest * random.uniform(0.5, 1)))
        except LeaseLost:
            self.lost += 1
            return
        self.given_back += 1
        failure = Failure(task.id, task.attempts, ended.status, ended.tail)
        self.failures = [*self.failures, failure][-_REMEMBERED_FAILURES:]
        if 0 < self.max_attempts <= task.attempts:
            self.given_up.append(task.id)
        self.tell(f"{task.id}: exit status {ended.status}, given back")

    def _close(self, one: _Running) -> None:
        del self.running[one.task.id]
        one.body_file.unlink(missing_ok=True)


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


def count_left(store: Store, queue: str) -> int:
    counts = store.task_count(queue)
    return sum(counts.get(status, 0) for status in ("free", "claimed", "expired"))
