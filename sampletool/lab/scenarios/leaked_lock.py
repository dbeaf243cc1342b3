"""A server does one job after the other, each under a lock. TERM gives up the job that runs; the server goes on.

The handler raises an exception, as everybody writes it. It can come at any point: also after the lock was won and
before the `try` that would give it back. The job is given up, the server lives on with a lock it does not know of, and
everybody else waits. It takes thousands of interruptions to see this once by luck.
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
from ..ours import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Removal, Scenario, Step, Way
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
    """A is the server: it does not end before B has had its turn."""
    while worker == "A" and "B" not in Path("log").read_text():
        os.listdir(".")
        time.sleep(0.001)


def invariant(history: History) -> Iterator[str]:
    """Whenever the signal comes: two never hold the lock at the same moment, and every worker has its turn."""
    yield from history.crowds
    yield from intruders(history)
    if history.is_over and "B" not in history.now.split():
        yield "B had no turn."


scenario = Scenario(
    title="A signal between winning the lock and the `with` block",
    rule="A signal handler only takes a note; the program acts on it where it is safe.",
    happened=(
        "Python 3.14, until it was repaired in July 2026: a handler that raises right after `__enter__` makes `with "
        "lock:` skip its `__exit__`. Ours, measured with such a handler: the lock stayed held in 524 of 8,007 "
        "interruptions.",
        "https://github.com/python/cpython/issues/148874",
    ),
    question="TERM comes while A is busy taking its lock, and A goes on serving. Who gives the lock back?",
    shared="the log",
    strikes="~",
    ways={
        "naive": Way(
            says="a handler that raises, and try/finally around the work",
            shows="A1 A~ A2 B1",
            because="the exception came before the `try`, so its `finally` never ran.",
        ),
        "fixed": Way(
            says="our signals and our lock: recorded first, acted on inside the block",
            shows="A1 A~ A2 B1",
            because="the note was read inside the block, and leaving the block gave the lock back.",
        ),
        "fixed-at-once": Way(
            says="the same without a look inside the block: a signal that ends the wait does not give the lock",
            shows="B1 A1 A~ B2",
            because="A gave up its wait, and did not do the work without the lock.",
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
            says="a handler that raises",
            pattern="self.received = number",
            instead="self.received = number\nraise Interrupted(number)",
            breaks="wait for ever",
        ),
        Removal(
            "kit/safety/lock.py:Lock.exclusively",
            says="giving the lock back only when all went well",
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
    still_broken_by="a library that installs a handler of its own which raises.",
)
