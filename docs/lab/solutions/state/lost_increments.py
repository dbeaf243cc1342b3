"""The solution of the exercise lost-increments."""

import fcntl
from pathlib import Path

COUNT = Path("count")


def prepare() -> None:
    """Set the counter to 0."""
    COUNT.write_text("0")


def worker(name: str) -> None:
    """Add one to the counter under a lock."""
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        count = int(COUNT.read_text())
        COUNT.write_text(str(count + 1))


def invariant() -> None:
    """Check that both visits were counted."""
    assert COUNT.read_text() == "2", f"the counter is {COUNT.read_text()}."
