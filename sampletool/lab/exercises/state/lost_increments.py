"""Exercise: two processes count a visit each, and the counter must be 2 at the end.

Change worker() until `tool lab try` finds no broken schedule. This exercise uses a file instead of
a store, because the lab steps files.
"""

from pathlib import Path

COUNT = Path("count")


def prepare() -> None:
    """Set the counter to 0."""
    COUNT.write_text("0")


def worker(name: str) -> None:
    """Add one to the counter."""
    count = int(COUNT.read_text())
    COUNT.write_text(str(count + 1))


def invariant() -> None:
    """Check that both visits were counted."""
    assert COUNT.read_text() == "2", f"the counter is {COUNT.read_text()}."
