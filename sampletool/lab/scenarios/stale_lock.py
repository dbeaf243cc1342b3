"""A program makes sure that it is alone by creating a file, and removes it when it is done. Then it is killed.

The file stays. Every later caller waits for a process that is long dead, until a person finds the file and
removes it by hand. So people teach the program to look whether the owner is still alive, and to remove what the dead
left: now two of them look at the same moment, and the second one removes the lock that the first has just taken.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

from ..ours import PATIENT_WAIT_SECONDS, lock_named
from ..scenario import History, Scenario, Step, Way
from ._mechanisms import with_shared_lock, without_lock
from ._turns import WORK, look, prepare, work

__all__ = ["look"]

NOBODY = 2**22 + 1
"""A pid that no process can have."""


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
    try:
        os.kill(int(Path("lock").read_text()), 0)
    except (FileNotFoundError, ProcessLookupError):
        return False
    return True


def create_lock() -> None:
    descriptor = os.open("lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(descriptor, str(os.getpid()).encode())


def leave_a_dead_owner(directory: Path) -> None:
    prepare(directory)
    (directory / "lock").write_text(str(NOBODY))


def invariant(history: History) -> Iterator[str]:
    """Two never hold the lock at the same moment, and every worker that lives has its turn."""
    yield from history.crowds
    for letter in history.statuses:
        if letter not in history.now.split():
            yield f"{letter} had no turn."


scenario = Scenario(
    title="A killed program leaves its lock behind",
    rule="Let the kernel hold the lock: it knows who is dead, and you do not.",
    happened=(
        "tgcli: after kill -9 its lock file stayed, and every later command was refused. What was asked"
        " for, and done, is to look whether the owner is alive, and to remove the file if not.",
        "https://github.com/kfastov/tgcli/issues/21",
    ),
    question="A is killed with -9 while it has the lock. What happens to B?",
    shared="the log",
    strikes="!",
    # With two, nobody would come while the second one holds a lock file that the first has removed.
    every_step_workers=3,
    ways={
        "naive": Way(
            says="a file that must not be there yet, removed at the end",
            steps=(Step("lock", "open", "lock", kind="create", waits=True, holds=True), WORK),
            shows="A1 B1 A!",
            because="nobody is left who would remove A's file.",
        ),
        "wrong-reclaim": Way(
            says="look whether the owner is alive, and remove what a dead one left",
            steps=(
                Step("look", "open", "lock", kind="read", waits=True),
                Step("remove", "os.remove", "lock"),
                Step("lock", "open", "lock", kind="create", holds=True),
                WORK,
            ),
            shows="A1 B1 A2 A3 B2 B3",
            because="both saw the dead owner; B removed the lock that A had taken meanwhile.",
            prepare=leave_a_dead_owner,
            strikes="",
        ),
        "fixed": Way(
            says="our lock: the kernel's, which ends with the process",
            steps=(Step("lock", "fcntl.flock", "lock", kind="lock", holds=True), WORK),
            shows="A1 B1 A!",
            because="the kernel took the lock back in the moment in which A died, and gave it to B.",
        ),
    },
    mechanisms=(
        without_lock("held the lock at the same moment"),
        with_shared_lock("held the lock at the same moment"),
    ),
    symbol="sampletool.kit.safety.lock:Lock.exclusively",
    still_broken_by="a user who deletes the lock file by hand, and file systems that do not carry flock.",
)
