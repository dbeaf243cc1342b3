"""How long a verb of the store may take, what can end it early, and who hears of warnings.

The caller of a store builds one `RetryPolicy`. Every backend obeys it, so that `--lock-timeout`,
`--timeout`, `--dry-run` and signals mean the same for all of them.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from pathlib import Path

from ..kit.safety.signals import Signals
from .errors import StoreBusy

DEFAULT_WAIT_SECONDS = 10.0
"""How long to wait for a lock if the caller does not say."""

MIN_SERVER_SECONDS = 2.0
"""How long a server may always take.

A caller who does not want to wait for locks (`--lock-timeout 0`) does not expect a server to reply
in no time.
"""

_MIN_SHARE = 1 / 20
"""The share of `at_least` that a verb may take although the deadline of the process is closer.

With no time at all, a command could not even report what happened to its request.
"""

HoldLock = Callable[[Path, str, bool], AbstractContextManager[object]]
"""A function that holds a lock between processes while a `with` block lasts.

Its arguments are the path and the name of the lock, and whether to write a record of the holder
into the lock file.
"""


@dataclass(frozen=True)
class RetryPolicy:
    """The limits of every verb of one store."""

    hold_lock: HoldLock
    signals: Signals
    warn: Callable[[str, str], None]
    """Report a warning: its code and its message."""

    requested_wait_seconds: float | None = None
    """How long the caller wants to wait for locks. None if the caller did not say."""

    max_seconds: float = inf
    """The longest that a verb may take, however long the caller wants to wait.

    A worker sets it, because it has leases to renew.
    """

    min_server_seconds: float = MIN_SERVER_SECONDS
    """How long a server may always take. Only `max_seconds` and the process's deadline win."""

    dry_run: bool = False
    """Whether verbs return what they would return, but change nothing."""

    @property
    def wait_seconds(self) -> float:
        """How long to wait for a lock: as long as the caller wants, but at most `max_seconds`."""
        wait_seconds = self.requested_wait_seconds
        if wait_seconds is None:
            wait_seconds = DEFAULT_WAIT_SECONDS
        return min(self.max_seconds, wait_seconds)

    def seconds_from_now(self, at_least: float = 0.0) -> float:
        """Return how long a verb that starts now may take.

        It gets `at_least` this time, unless `max_seconds` or the deadline of the process is closer.
        """
        seconds = min(self.max_seconds, max(self.wait_seconds, at_least))
        seconds_left = self.signals.seconds_left
        if seconds_left is None:
            return seconds
        return max(at_least * _MIN_SHARE, min(seconds, seconds_left))

    def busy_error(self, store: str) -> StoreBusy:
        """Return the error for a store that stayed locked during the whole wait."""
        return StoreBusy(store, round(self.wait_seconds * 1000))
