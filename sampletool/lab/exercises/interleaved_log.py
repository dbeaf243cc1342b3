"""Exercise: two processes write one line each to the same log, and both lines must stay readable.

Change worker() until `tool lab try` finds no broken schedule.
"""

import os
from pathlib import Path

LOG = Path("log")


def prepare() -> None:
    """Create an empty log."""
    LOG.touch()


def worker(name: str) -> None:
    """Write one line to the log."""
    log = os.open(LOG, os.O_APPEND | os.O_WRONLY)
    os.write(log, b"line of ")
    os.write(log, f"{name}\n".encode())


def invariant() -> None:
    """Check that each line is in the log as it was written."""
    lines = sorted(LOG.read_text().splitlines())
    assert lines == ["line of A", "line of B"], f"the log has the lines {lines}."
