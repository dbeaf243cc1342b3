"""The solution of the exercise unlinked-lock."""

import fcntl
import os
from pathlib import Path

JOBS = {"A": 2, "B": 1}
"""How many jobs each worker has to do."""


def worker(name: str) -> None:
    """Do each job under the lock of a file that stays."""
    for number in range(JOBS[name]):
        descriptor = os.open("lock", os.O_CREAT | os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        work(f"{name}{number}")
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
