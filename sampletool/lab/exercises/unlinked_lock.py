"""Exercise: a program deletes its lock file after use, and two processes hold the lock at once.

Change worker() until `tool lab try` finds no broken schedule. A has two jobs and B has one. All of
them must be done, but never two at the same time. Change only how worker() takes and releases the
lock.
"""

import fcntl
import os
from pathlib import Path

JOBS = {"A": 2, "B": 1}
"""How many jobs each worker has to do."""


def worker(name: str) -> None:
    """Do each job while no other worker does one."""
    for number in range(JOBS[name]):
        descriptor = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        work(f"{name}{number}")
        Path("lock").unlink(missing_ok=True)
        os.close(descriptor)


def work(job: str) -> None:
    """Do a job. If another worker is doing one at the same time, fail."""
    at_work = Path("at-work")
    at_work.mkdir()
    at_work.rename(f"done-{job}")


def invariant() -> None:
    """Check that all three jobs were done."""
    done = sorted(path.name for path in Path().glob("done-*"))
    assert len(done) == 3, f"only these jobs were done: {done}."
