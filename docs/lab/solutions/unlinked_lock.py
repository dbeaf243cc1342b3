"""The solution of the exercise unlinked-lock."""

import fcntl
import os
from pathlib import Path

JOBS = {"A": 2, "B": 1}
"""How many jobs each worker has to do."""


def prepare() -> None:
    """Create a counter that needs a lock."""
    Path("count").write_text("0")


def worker(name: str) -> None:
    """Do each job under the lock of a file that stays."""
    for _ in range(JOBS[name]):
        descriptor = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        work()
        os.close(descriptor)


def work() -> None:
    """Add one to the counter. If two workers do this at the same time, one job is not counted."""
    count = int(Path("count").read_text())
    Path("count").write_text(str(count + 1))


def invariant() -> None:
    """Check that all three jobs were counted."""
    assert Path("count").read_text() == "3", "a job was not counted."
