"""The solution of the exercise lost-config-update."""

import fcntl
from pathlib import Path

FILE = Path("tool.toml")


def prepare() -> None:
    """Create the file that both processes edit."""
    FILE.write_text("jobs = 4\n")


def worker(name: str) -> None:
    """Add a key. Hold one lock from before the read until after the write."""
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        text = FILE.read_text()
        FILE.write_text(f"{text}{name} = 1\n")


def invariant() -> None:
    """Check the file when both processes have finished."""
    lines = FILE.read_text().splitlines()
    assert "jobs = 4" in lines, "the key jobs is lost."
    assert "A = 1" in lines, "the key of A is lost."
    assert "B = 1" in lines, "the key of B is lost."
