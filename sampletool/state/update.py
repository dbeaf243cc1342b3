"""Read a value, change it, and write it back only over what was read: again until nobody came between."""

import random
import time
from collections.abc import Callable
from typing import Any

from ..kit.contract.errors import KeyNotFound, VersionConflict
from .protocol import Written
from .store import Store

_FIRST_PAUSE_SECONDS = 0.005
_LONGEST_PAUSE_SECONDS = 0.5


def update(store: Store, key: str, change: Callable[[Any], Any], *, attempts: int = 10) -> Written:
    """`change` gets the value, None if there is none, and makes the new one; it may be called several times.

    VERSION_CONFLICT if others were faster every time. The pauses grow and are random, so that a crowd spreads out.
    """
    for attempt in range(attempts):
        try:
            _, value, version, _ = store.state_get(key)
        except KeyNotFound:
            value, version = None, 0
        try:
            return store.state_set(key, change(value), if_version=version)
        except VersionConflict:
            if attempt == attempts - 1:
                raise
            time.sleep(random.uniform(0, min(_LONGEST_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**attempt)))
    raise ValueError("attempts has to be at least 1")
