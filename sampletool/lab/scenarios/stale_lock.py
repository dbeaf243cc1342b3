"""A program creates a lock file so that only one instance runs, and deletes the file at the end.

Then it is killed. The lock file stays. All later runs wait for a process that no longer exists,
until a person deletes the file. The usual answer is to check whether the owner is alive, and to
delete the file if it is dead. Now two processes check at the same moment, and the second one
deletes the lock that the first one has just created.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..production_lock import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Scenario, Step, Variant
from ._mechanisms import with_shared_lock, without_lock
from ._turns import WORK, prepare, read_state, work

__all__ = ["read_state"]

DEAD_PID = 2**22 + 1
"""A pid that no process can have, because it is above the maximum of Linux."""


def naive(worker: str) -> None:
    while True:
        try:
            create_lock()
            break
        except FileExistsError:
            time.sleep(0.001)
    work(worker)
    os.remove("lock")


def wrong_reclaim(worker: str) -> None:
    """Delete the lock file of a dead owner. Wrong: it may be a newer lock file by now."""
    while True:
        while owner_is_alive():
            time.sleep(0.001)
        Path("lock").unlink(missing_ok=True)
        try:
            create_lock()
            break
        except FileExistsError:
            continue
    work(worker)


def fixed(worker: str) -> None:
    with lock_named("lock").exclusively(PATIENT_WAIT_SECONDS):
        work(worker)


def owner_is_alive() -> bool:
    """Return whether there is a lock file, and the process that it names exists."""
    try:
        os.kill(int(Path("lock").read_text()), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True


def create_lock() -> None:
    """Create the lock file with the pid of this process. Raise FileExistsError if it exists."""
    descriptor = os.open("lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(descriptor, str(os.getpid()).encode())


def leave_a_dead_owner(directory: Path) -> None:
    """Leave the lock file of a process that no longer exists."""
    prepare(directory)
    (directory / "lock").write_text(str(DEAD_PID))


def invariant(history: History) -> Iterator[str]:
    """At most one worker holds the lock at any moment, and every worker that is alive gets its
    turn.
    """
    yield from history.lock_problems
    # A worker that was killed has no exit code.
    for worker in history.exit_codes:
        if worker not in history.state.workers:
            yield f"{worker} never got its turn."


scenario = Scenario(
    title="Stale lock file: a killed program leaves its lock behind",
    subtitle="The next run waits for a process that no longer exists.",
    rule="Let the kernel hold the lock. It knows which process is dead, and you do not.",
    happened=(
        "After kill -9, the lock file of tgcli stayed, and every later command was rejected. The "
        "project then checked whether the owner was alive, and deleted the file if it was not.",
        "https://github.com/kfastov/tgcli/issues/21",
    ),
    question="A is killed with kill -9 while it holds the lock. What happens to B?",
    shared="the log",
    faults="!",
    # With two workers, nobody would come while the second one holds a lock file that the first
    # one has removed.
    every_step_workers=3,
    variants={
        "naive": Variant(
            summary="creates a file that must not exist yet, and deletes it at the end",
            steps=(
                Step(
                    name="lock",
                    event="open",
                    file="lock",
                    kind="create",
                    waits_in_loop=True,
                    takes_lock=True,
                ),
                WORK,
            ),
            schedule="A1 B1 A!",
            explanation="A was killed, so no process deletes A's file.",
        ),
        "wrong-reclaim": Variant(
            summary="checks whether the owner is alive, and deletes the file of a dead owner",
            steps=(
                Step(name="look", event="open", file="lock", kind="read", waits_in_loop=True),
                Step(name="remove", event="os.remove", file="lock"),
                Step(name="lock", event="open", file="lock", kind="create", takes_lock=True),
                WORK,
            ),
            schedule="A1 B1 A2 A3 B2 B3",
            explanation=(
                "Both saw the dead owner. B then deleted the lock file that A had created in the "
                "meantime."
            ),
            prepare=leave_a_dead_owner,
            faults="",
        ),
        "fixed": Variant(
            summary="takes the tool's own lock, which the kernel releases when the process exits",
            steps=(
                Step(name="lock", event="fcntl.flock", file="lock", kind="lock", takes_lock=True),
                WORK,
            ),
            schedule="A1 B1 A!",
            explanation="When A died, the kernel released the lock, and B got it.",
        ),
    },
    mechanisms=(
        without_lock("held the lock at the same moment"),
        with_shared_lock("held the lock at the same moment"),
    ),
    production_code="sampletool.kit.safety.lock:Lock.exclusively",
)
