"""Exercise: two admins leave a team at the same moment, and nobody is left.

Change worker() until `tool lab try` finds no broken schedule. One of the two may leave, and the
other one has to stay. This exercise uses files instead of a store, because the lab steps files.
"""

import os
from pathlib import Path

TEAM = Path("team")


def prepare() -> None:
    """Create a team with two admins."""
    TEAM.mkdir()
    for name in ("A", "B"):
        (TEAM / name).touch()


def worker(name: str) -> None:
    """Leave the team, unless nobody else is in it."""
    if len(os.listdir(TEAM)) > 1:
        (TEAM / name).unlink()


def invariant() -> None:
    """Check that one of the two has left, and the other one has stayed."""
    admins = sorted(os.listdir(TEAM))
    assert len(admins) == 1, f"these admins are left: {admins}."
