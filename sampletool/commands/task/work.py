"""Run a command for every task of a queue: claim, keep the lease, finish or give back."""

import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from sampletool.contract.errors import InvalidValues, Mistake, ToolError
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.file_errors import FileNotFound
from sampletool.contract.promise import Promise
from sampletool.contract.render import value_text
from sampletool.contract.store_errors import LeaseLost, StoreUnavailable, TasksFailed
from sampletool.safety.children import Children, Ended
from sampletool.safety.places import private_directory
from sampletool.state.promises import Claimed, Store
from sampletool.state.values import encode
from sampletool.store_options import CHANGING, DryRunOption, LeaseOption, StoreOption
from sampletool.wiring import Wiring

promise = Promise(
    effect="store",
    ends_with=(*CHANGING, ExitStatus.PARTIAL),
    locks=("store",),
    examples=(
        "tool task work mail --until-empty -- ./send",
        "tool task work mail --jobs 4 --lease 2m -- python send.py",
    ),
)

_IDLE_SECONDS = 0.5
_FIRST_DELAY_MS, _LONGEST_DELAY_MS = 1000, 60_000
_BODY_IN_ENVIRONMENT_BYTES = 32_768
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
    left: int
    """Tasks of the queue that are neither done nor failed."""
    effect: str

    def lines(self) -> list[str]:
        told = (
            f"{self.queue}: {self.finished} finished, {self.given_back} given back, {self.lost} lost, {self.left} left"
        )
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

    def left(self) -> int:
        counts = self.store.task_count(self.queue)
        return sum(counts.get(status, 0) for status in ("free", "claimed", "expired"))

    def give_all_back(self) -> None:
        """On the way out: nobody has to wait for our leases to end."""
        for one in list(self.running.values()):
            self._close(one)
            try:
                self.store.task_release(one.task.id, one.task.generation)
                self.given_back += 1
            except ToolError as error:
                self.tell(f"{one.task.id}: not given back: {error.message}")

    def result(self, left: int) -> Worked:
        effect = "updated" if self.finished or self.given_back else "unchanged"
        return Worked(self.queue, self.finished, self.given_back, self.lost, self.failures, left, effect)

    def _claim(self) -> None:
        if (free := self.jobs - len(self.running)) <= 0:
            return
        asked = time.monotonic()
        claim = self.store.task_claim(
            self.queue, self.name, lease_ms=self.lease_ms, count=free, max_attempts=self.max_attempts
        )
        for task in claim.tasks:
            body_file = self.scratch / f"{task.generation}-{len(self.running)}-{os.urandom(4).hex()}.json"
            body_file.write_text(encode(task.body))
            one = _Running(task, body_file, asked + self.lease_ms / 3000, asked + self.lease_ms / 1000)
            self.running[task.id] = one
            self.children.start(task.id, self.argv, cwd=self.cwd, env=self._environment_of(task, body_file))
            self.tell(f"{task.id}: started, attempt {task.attempts}")

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
        self.failures = [*self.failures, Failure(task.id, task.attempts, ended.status, ended.tail)]
        del self.failures[:-_REMEMBERED_FAILURES]
        if 0 < self.max_attempts <= task.attempts:
            self.given_up.append(task.id)
        self.tell(f"{task.id}: exit status {ended.status}, given back")

    def _close(self, one: _Running) -> None:
        del self.running[one.task.id]
        one.body_file.unlink(missing_ok=True)

    def _environment_of(self, task: Claimed, body_file: Path) -> dict[str, str]:
        text = value_text(task.body)
        fits = len(text.encode(errors="surrogatepass")) <= _BODY_IN_ENVIRONMENT_BYTES and "\0" not in text
        return {
            **self.environment,
            "TOOL_TASK_ID": task.id,
            "TOOL_TASK_GENERATION": str(task.generation),
            "TOOL_TASK_FENCE": f"{task.id}:{task.generation}",
            "TOOL_TASK_FILE": str(body_file),
            **({"TOOL_TASK_BODY": text} if fits and text.isprintable() else {}),
        }


def work(wiring: Wiring, worker: Worker, *, until_empty: bool) -> Worked:
    """Until the queue is settled, or for ever: then a signal or --timeout ends it."""
    try:
        with worker.children:
            while True:
                if not worker.turn():
                    if until_empty and worker.left() == 0:
                        break
                    wiring.signals.check()
                    wiring.signals.wait(_IDLE_SECONDS)
    except ToolError as error:
        worker.give_all_back()
        error.data = worker.result(0)
        raise
    result = worker.result(worker.left())
    if worker.given_up:
        raise TasksFailed(worker.given_up, result)
    return result


def command(
    ctx: typer.Context,
    queue: Annotated[str, typer.Argument(metavar="QUEUE")],
    argv: Annotated[list[str], typer.Argument(metavar="-- ARGV...", help="Run for each task; no shell.")],
    jobs: Annotated[int | None, typer.Option(min=1, max=256, metavar="N", help="How many at once.")] = None,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="End when all tasks are done or failed.")] = False,
    lease: LeaseOption = "60s",  # type: ignore[assignment]
    max_attempts: Annotated[int, typer.Option(min=0, metavar="N", help="Then it is failed; 0 is never.")] = 5,
    store: StoreOption = None,
    dry_run: DryRunOption = False,
) -> Worked:
    """Run a command for every task of a queue, keeping each lease while it runs.

    The command finds its task in TOOL_TASK_ID, TOOL_TASK_BODY and TOOL_TASK_FILE (JSON), and TOOL_TASK_FENCE for
    --fence. Exit status 0 finishes the task; any other gives it back, to be tried again after a growing delay.
    """
    wiring: Wiring = ctx.obj
    if lease < 1000:
        raise InvalidValues(Mistake("--lease", "INVALID_VALUE", "a lease shorter than 1s cannot be kept", f"{lease}ms"))
    program = shutil.which(argv[0], path=os.environ.get("PATH"))
    if program is None:
        raise FileNotFound(argv[0])
    if dry_run:
        counts = wiring.store.task_count(queue)
        left = sum(counts.get(status, 0) for status in ("free", "claimed", "expired"))
        return Worked(queue, 0, 0, 0, [], left, "unchanged")
    is_watched = wiring.options.get("verbose") or (sys.stderr is not None and os.isatty(2))
    worker = Worker(
        store=wiring.store,
        children=Children(wiring.signals),
        queue=queue,
        argv=[program, *argv[1:]],
        environment={**os.environ, "TOOL_SESSION_ID": wiring.session_id, **({"TOOL_STORE": store} if store else {})},
        cwd=wiring.cwd,
        scratch=private_directory(wiring.session_directory / wiring.request_id),
        name=wiring.session_id,
        jobs=jobs or wiring.settings.value("jobs") or os.cpu_count() or 1,
        lease_ms=lease,
        max_attempts=max_attempts,
        tell=wiring.say if is_watched else lambda _line: None,
    )
    try:
        return work(wiring, worker, until_empty=until_empty)
    finally:
        shutil.rmtree(worker.scratch, ignore_errors=True)
