"""What the caller sets for every verb: how long to wait, what ends a wait, who hears of doubts."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from ..kit.safety.signals import Signals
from .errors import StoreBusy

USUAL_SECONDS = 10.0
ANSWER_SECONDS = 2.0
"""How long a server may take at least: that nobody waits for locks does not mean that it must be instant."""


@dataclass(frozen=True)
class RetryPolicy:
    hold: Callable[[Path, str, bool], AbstractContextManager[Any]]
    """Takes a lock between processes, for as long as a `with` block lasts: the path of the lock, its name, and whether
    its record shall name us, or the kernel alone."""
    signals: Signals
    warn: Callable[[str, str], None]
    asked_seconds: float | None = None
    """How long the caller is willing to wait, if it has said so."""
    longest_seconds: float = inf
    """No verb may take longer, however patient the caller is: a worker has leases to keep."""
    answer_seconds: float = ANSWER_SECONDS
    """How long a server may take at least."""
    rehearse: bool = False
    """Forecast: every verb answers as it would, and leaves nothing behind."""

    @property
    def patience_seconds(self) -> float:
        return min(self.longest_seconds, USUAL_SECONDS if self.asked_seconds is None else self.asked_seconds)

    def seconds(self, least: float = 0.0) -> float:
        """How long a verb that begins now may take."""
        left = self.signals.seconds_left
        patience = min(self.longest_seconds, max(self.patience_seconds, least))
        return patience if left is None else max(least / 20, min(patience, left))

    def busy(self, store: str) -> StoreBusy:
        """The store was locked for all the time that we were willing to wait."""
        return StoreBusy(store, round(self.patience_seconds * 1000))
