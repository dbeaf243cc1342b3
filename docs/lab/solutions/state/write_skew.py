"""The solution of the exercise write-skew."""

import fcntl
import os
from pathlib import Path

TEAM = Path("team")


def prepare() -> None:
    """Create a team with two admins."""
    TEAM.mkdir()
    for name in ("A", "B"):
        (TEAM / name).touch()


def worker(name: str) -> None:
    """Leave the team under one lock for the whole team, unless nobody else is in it."""
    with open("team.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if len(os.listdir(TEAM)) > 1:
            (TEAM / name).unlink()


def invariant() -> None:
    """Check that one of the two has left, and the other one has stayed."""
    admins = sorted(os.listdir(TEAM))
    assert len(admins) == 1, f"these admins are left: {admins}."
