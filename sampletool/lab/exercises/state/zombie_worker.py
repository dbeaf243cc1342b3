"""Exercise: a worker that lost its claim must not overwrite the result of its successor.

Change write_result() until `tool lab try` finds no broken schedule. Each claim has a number, and
the newest claim owns the job. A worker may be paused between any two steps.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RESULT = Path("result")


def prepare() -> None:
    """Create a job without a claim and without a result."""
    RESULT.write_text("0 none")


def worker(name: str) -> None:
    """Claim the job, then write its result."""
    number = claim()
    write_result(number, name)


def claim() -> int:
    """Claim the job, and return the number of this claim. From now on, older claims are lost."""
    number = 1
    while True:
        # Each claim is a directory. Only one worker can create the directory of a number.
        try:
            os.mkdir(f"claim-{number}")
            return number
        except FileExistsError:
            number += 1


def newest_claim() -> int:
    """Return the number of the newest claim, which owns the job. It is the number of all claims."""
    return sum(name.startswith("claim-") for name in os.listdir())


def write_result(number: int, text: str) -> None:
    """Write the result of the worker with this claim."""
    RESULT.write_text(f"{number} {text}")


@contextmanager
def locked() -> Iterator[None]:
    """Hold a lock until the block ends."""
    with open("lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def invariant() -> None:
    """Check that the result is from the newest claim."""
    number = RESULT.read_text().split()[0]
    newest = str(newest_claim())
    assert number == newest, f"claim {newest} is the newest, but the result is from claim {number}."
