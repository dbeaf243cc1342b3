"""The solution of the exercise threads-counter."""

import threading

WORKERS = "threads"

lock = threading.Lock()
counter = 0


def worker(name: str) -> None:
    """Count this thread, under a lock that both threads share."""
    global counter
    with lock:
        counter += 1


def invariant() -> None:
    """Check that both threads were counted."""
    assert counter == 2, f"two threads have counted, but the counter is {counter}."
