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
from typing import Any

from ...kit.safety.errors import Interrupted
from ...kit.safety.signals import Signals
from ..production_lock import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Removal, Scenario, Step, Variant
from ._turns import WORK, intruders, look, prepare, work

__all__ = ["look", "prepare"]


class GiveUp(Exception):
    pass


def give_up(number: int, frame: Any) -> None:
    raise GiveUp


def naive(worker: str) -> None:
    signal.signal(signal.SIGTERM, give_up)
    try:
        lock = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.write(lock, worker.encode())
        try:
            work(worker)
        finally:
            fcntl.flock(lock, fcntl.LOCK_UN)
    except GiveUp:
        pass
    serve_on(worker)


def fixed(worker: str) -> None:
    signals = Signals()
    signals.install()
    try:
        with lock_named("lock", signals).exclusively(PATIENT_WAIT_SECONDS):
            signals.check()
            work(worker)
    except Interrupted:
        pass
    serve_on(worker)


def fixed_at_once(worker: str) -> None:
    signals = Signals()
    signals.install()
    try:
        with lock_named("lock", signals).exclusively(PATIENT_WAIT_SECONDS):
            work(worker)
    except Interrupted:
        pass
    serve_on(worker)


def serve_on(worker: str) -> None:
    """Run until B has written to the log, if this worker is A, the server. Return at once in B."""
    while worker == "A" and "B" not in Path("log").read_text():
        os.listdir(".")
        time.sleep(0.001)


def invariant(history: History) -> Iterator[str]:
    """At most one worker holds the lock, and B gets its turn, whenever the signal arrives."""
    yield from history.broken_locks
    yield from intruders(history)
    if history.is_over and "B" not in history.now.split():
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
    strikes="~",
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
        Step("lock", "fcntl.flock", "lock", kind="lock", holds=True),
        Step("write its name", "os.write", "lock"),
        Step("write its name", "os.pwrite", "lock", after=("lock",)),
        WORK,
        Step("serve on", "os.listdir", "here", waits=True),
    ),
    mechanisms=(
        Removal(
            "kit/safety/signals.py:Signals._record",
            summary="raise an exception in the handler",
            pattern="self.received = number",
            instead="self.received = number\nraise Interrupted(number)",
            breaks="wait for ever",
        ),
        Removal(
            "kit/safety/lock.py:Lock.exclusively",
            summary="release the lock only if the block succeeds",
            pattern="""\
try:
    ...
finally:
    ...
""",
            instead="""\
try:
    ...
except ZeroDivisionError:
    pass
else:
    ...
""",
            breaks="wait for ever",
        ),
    ),
    symbol="sampletool.kit.safety.signals:Signals._record",
)
