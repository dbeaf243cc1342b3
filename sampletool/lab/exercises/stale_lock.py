"""Exercise: a process was killed and has left its lock file behind.

Change worker() until `tool lab try` finds no broken schedule. Both workers must get their turn, but
never at the same time. Change only how worker() takes and releases the lock.
"""

import os
import time
from pathlib import Path


def prepare() -> None:
    """Leave the lock file of a dead process behind, and a counter that needs a lock."""
    Path("lock").write_text("4194305")
    Path("count").write_text("0")


def worker(name: str) -> None:
    """Do the work while no other worker does it."""
    while True:
        try:
            os.close(os.open("lock", os.O_CREAT | os.O_EXCL))
            break
        except FileExistsError:
            time.sleep(0.001)
    work()
    os.remove("lock")


def work() -> None:
    """Add one to the counter. If two workers do this at the same time, one is not counted."""
    count = int(Path("count").read_text())
    Path("count").write_text(str(count + 1))


def invariant() -> None:
    """Check that both workers were counted."""
    assert Path("count").read_text() == "2", "a worker was not counted."
