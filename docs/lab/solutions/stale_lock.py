"""The solution of the exercise stale-lock."""

import fcntl
from pathlib import Path


def prepare() -> None:
    """Leave the lock file of a dead process behind, and a counter that needs a lock."""
    Path("lock").write_text("4194305")
    Path("count").write_text("0")


def worker(name: str) -> None:
    """Do the work under a lock that the kernel releases when the process exits."""
    with open("lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        work()


def work() -> None:
    """Add one to the counter. If two workers do this at the same time, one is not counted."""
    count = int(Path("count").read_text())
    Path("count").write_text(str(count + 1))


def invariant() -> None:
    """Check that both workers were counted."""
    assert Path("count").read_text() == "2", "a worker was not counted."
