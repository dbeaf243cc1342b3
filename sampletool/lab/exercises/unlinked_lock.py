"""Exercise: a program deletes its lock file after use, and two processes hold the lock at once.

Change worker() until `tool lab try` finds no broken schedule. Both workers must do both of their
jobs, but never at the same time. Change only how worker() takes and releases the lock.
"""

import fcntl
import os
from pathlib import Path

JOBS = 2


def prepare() -> None:
    """Create a counter that needs a lock."""
    Path("count").write_text("0")


def worker(name: str) -> None:
    """Do each job while no other worker does one."""
    for _ in range(JOBS):
        descriptor = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        work()
        Path("lock").unlink(missing_ok=True)
        os.close(descriptor)


def work() -> None:
    """Add one to the counter. If two workers do this at the same time, one job is not counted."""
    count = int(Path("count").read_text())
    Path("count").write_text(str(count + 1))


def invariant() -> None:
    """Check that all jobs of both workers were counted."""
    assert Path("count").read_text() == str(2 * JOBS), "a job was not counted."
