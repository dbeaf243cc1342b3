"""Read a value, change it, and write it back without losing the change of another caller."""

import random
import time
from collections.abc import Callable
from typing import Any

from ..kit.contract.errors import KeyNotFound, VersionConflict
from .protocol import Written
from .store import Store

_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.5


def update(
    store: Store,
    key: str,
    change: Callable[[Any], Any],
    *,
    attempts: int = 10,
) -> Written:
    """Set the value to `change(value)`, and return its new version.

    If another caller changes the value at the same time, start again with the value of that caller.
    So `change` may be called several times. It gets None if there is no value.

    Raise VersionConflict if another caller was faster in each of the attempts.
    """
    if attempts < 1:
        raise ValueError("attempts must be at least 1")
    for attempt in range(attempts):
        try:
            stored_value = store.state_get(key)
        except KeyNotFound:
            value, version = None, 0
        else:
            value, version = stored_value.value, stored_value.version
        try:
            return store.state_set(key, change(value), if_version=version)
        except VersionConflict:
            if attempt == attempts - 1:
                raise
            _pause(attempt)
    raise AssertionError("unreachable: the last attempt returns or raises")


def _pause(attempt: int) -> None:
    """Sleep for a random time that grows with each attempt, so that a crowd spreads out."""
    longest = min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**attempt)
    time.sleep(random.uniform(0, longest))
