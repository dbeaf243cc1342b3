"""Exercise: two transfers, one from left to right and one from right to left, must not deadlock.

Change worker() until `tool lab try` finds no broken schedule. A transfer needs both locks.
"""

import fcntl
from pathlib import Path


def prepare() -> None:
    """Create one lock file for each account, and an empty log."""
    for name in ("left", "right", "log"):
        Path(name).touch()


def worker(name: str) -> None:
    """Transfer from left to right as A, and from right to left as B."""
    if name == "A":
        source, target = "left", "right"
    else:
        source, target = "right", "left"
    with open(source) as first, open(target) as second:
        fcntl.flock(first, fcntl.LOCK_EX)
        fcntl.flock(second, fcntl.LOCK_EX)
        with open("log", "a") as log:
            log.write(name)


def invariant() -> None:
    """Check that both transfers have finished."""
    assert sorted(Path("log").read_text()) == ["A", "B"], "a transfer is missing."
