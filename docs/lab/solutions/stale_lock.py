"""The solution of the exercise stale-lock."""

import fcntl
from pathlib import Path

KILL = True
"""The lab also kills A after each of its steps. B must get its turn even then."""


def prepare() -> None:
    """Leave the lock file of a dead process behind, and a counter that needs a lock."""
    Path("lock").write_text("4194305")
    Path("count").write_text("0")


def worker(name: str) -> None:
    """Do the work under a lock that the kernel releases when the process exits."""
    with open("lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        work(name)


def work(name: str) -> None:
    """Add one to the counter. If two workers do this at the same time, one is not counted."""
    count = int(Path("count").read_text())
    new = Path(f"count-{name}")
    new.write_text(str(count + 1))
    new.rename("count")


def invariant(killed: str | None) -> None:
    """Check that both workers were counted. A may be missing if it was killed."""
    count = Path("count").read_text()
    if killed:
        assert count in ("1", "2"), f"B was not counted: {count}."
    else:
        assert count == "2", f"a worker was not counted: {count}."
