"""Tests wait for events. The limit is a safety net, for a busy machine as well."""

import time
from collections.abc import Callable


def wait_until(ready: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError("the event never came")
        time.sleep(0.005)
