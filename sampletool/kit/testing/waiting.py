"""Wait for an event. Tests never sleep for a fixed time."""

import time
from collections.abc import Callable

_LONGEST_SECONDS = 60
"""The timeout for an event that should happen at once. It is long enough for a busy machine."""


def wait_until(is_ready: Callable[[], object]) -> None:
    """Wait until the function returns something true. Raise TimeoutError if it never does."""
    deadline = time.monotonic() + _LONGEST_SECONDS
    while not is_ready():
        if time.monotonic() > deadline:
            raise TimeoutError("the event never came")
        time.sleep(0.005)
