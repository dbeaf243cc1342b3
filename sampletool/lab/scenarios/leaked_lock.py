"""A server does one job after the other, each under a lock.

The signal TERM cancels the current job, and the server continues with the next one. The signal
handler raises an exception, which is what most people write. A signal can arrive at any point, so
it can arrive after the server has taken the lock and before the `try` block that would release it.
The server then keeps a lock that it does not know of. This takes thousands of runs to happen by
chance.
"""

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from ...kit.safety.errors import Interrupted
from ...kit.safety.signals import Signals
from ..production_lock import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Mutation, Scenario, Step, Variant
from ._stops import stop_here
from ._turns import WORK, find_work_without_lock, prepare, read_state, work

__all__ = ["prepare", "read_state"]


class JobCancelled(Exception):
    """The signal handler raises this error in the middle of a job."""


def cancel_job(number: int, frame: FrameType | None) -> None:
    raise JobCancelled


def naive(worker: str) -> None:
    """Do a job under a lock. TERM cancels the job of A, the server, which then continues."""
    signal.signal(signal.SIGTERM, cancel_job)
    try:
        lock = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, worker.encode())
        try:
            work(worker)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
    except JobCancelled:
        pass
    if worker == "A":
        serve_until_b_has_worked()


def fixed(worker: str) -> None:
    """Do a job under a lock. A signal is only recorded, and the job looks for it."""
    signals = Signals()
    signals.install()
    try:
        with lock_named("lock", signals).exclusively(PATIENT_WAIT_SECONDS):
            signals.check()
            work(worker)
    except Interrupted:
        pass
    if worker == "A":
        serve_until_b_has_worked()


def fixed_at_once(worker: str) -> None:
    """Do a job under a lock. A recorded signal ends the wait for the lock, but not the job."""
    signals = Signals()
    signals.install()
    try:
        with lock_named("lock", signals).exclusively(PATIENT_WAIT_SECONDS):
            work(worker)
    except Interrupted:
        pass
    if worker == "A":
        serve_until_b_has_worked()


def serve_until_b_has_worked() -> None:
    """Keep the server running until B has written its name into the log."""
    while "B" not in Path("log").read_text():
        stop_here()
        time.sleep(0.001)


def invariant(history: History) -> Iterator[str]:
    """At most one worker holds the lock, and B gets its turn, whenever the signal arrives."""
    yield from history.lock_problems
    yield from find_work_without_lock(history)
    if history.is_finished and "B" not in history.state.workers:
        yield "B never got its turn."


scenario = Scenario(
    title="Leaked lock: a signal handler that raises an exception",
    subtitle="A signal arrives between taking the lock and the `with` block.",
    rule="In a signal handler, only record the signal. Act on it at a point where that is safe.",
    happened=(
        "In Python 3.14, until a fix in July 2026, a handler that raised right after `__enter__` "
        "made `with lock:` skip its `__exit__`. We measured our own lock with such a handler: it "
        "stayed locked in 524 of 8,007 interruptions.",
        "https://github.com/python/cpython/issues/148874",
    ),
    question=(
        "TERM arrives while A takes its lock, and A continues as a server. Who releases the lock?"
    ),
    shared="the log",
    faults="~",
    variants={
        "naive": Variant(
            summary="raises an exception in the handler, and releases the lock in `finally`",
            schedule="A1 A~ A2 B1",
            explanation="The exception came before the `try` block, so its `finally` never ran.",
        ),
        "fixed": Variant(
            summary="records the signal, and acts on it inside the `with` block",
            schedule="A1 A~ A2 B1",
            explanation=(
                "A saw the recorded signal inside the block, and leaving the block released the "
                "lock."
            ),
        ),
        "fixed-at-once": Variant(
            summary=(
                "the same without a look inside the block: a signal that ends the wait does not "
                "give the lock"
            ),
            schedule="B1 A1 A~ B2",
            explanation="A gave up its wait, and did not do the work without the lock.",
        ),
    },
    steps=(
        Step(name="lock", event="fcntl.flock", file="lock", kind="lock", takes_lock=True),
        Step(name="write its name", event="os.write", file="lock"),
        Step(name="write its name", event="os.pwrite", file="lock", after_steps=("lock",)),
        WORK,
        Step(name="serve on", event="os.listdir", file="here", waits_in_loop=True),
    ),
    mechanisms=(
        Mutation(
            function="kit/safety/signals.py:Signals._record",
            summary="raise an exception in the handler",
            original_code="self.received = number",
            replacement_code="self.received = number\nraise Interrupted(number)",
            expected_problem="wait for ever",
        ),
        Mutation(
            function="kit/safety/lock.py:Lock.exclusively",
            summary="release the lock only if the block succeeds",
            original_code="""\
try:
    ...
finally:
    ...
""",
            replacement_code="""\
try:
    ...
except ZeroDivisionError:
    pass
else:
    ...
""",
            expected_problem="wait for ever",
        ),
    ),
    production_code="sampletool.kit.safety.signals:Signals._record",
)
