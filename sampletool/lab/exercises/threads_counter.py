"""Exercise: two threads add one to the same counter, and one of them is not counted.

Change worker() until `tool lab try` finds no broken schedule. The workers of this exercise are
threads of one process, so they share the variables of this file.
"""

import threading

WORKERS = "threads"

lock = threading.Lock()
counter = 0


def worker(name: str) -> None:
    """Count this thread."""
    global counter
    counter += 1


def invariant() -> None:
    """Check that both threads were counted."""
    assert counter == 2, f"two threads have counted, but the counter is {counter}."
