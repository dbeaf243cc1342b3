"""Exercise: a process was killed and has left its lock file behind.

Change worker() until `tool lab try` finds no broken schedule. Both workers must get their turn, but
never at the same time, also if A is killed. Change only how worker() takes and releases the lock.
"""

import os
import time
from pathlib import Path

KILL = True
"""The lab also kills A after each of its steps. B must get its turn even then."""


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
    work(name)
    os.remove("lock")


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
