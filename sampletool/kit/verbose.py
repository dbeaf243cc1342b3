"""What --verbose, or waiting at a terminal, shows of locks: the log of safety/lock.py, on stderr."""

import logging
import os
from collections.abc import Callable

from .safety.lock import log


class _Lines(logging.Handler):
    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__()
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        self._say(record.getMessage())


def show_locks(say: Callable[[str], None], *, verbose: bool) -> None:
    """All that happens to a lock, or at a terminal what it waits for."""
    log.handlers[:] = [_Lines(say)]
    log.setLevel(logging.DEBUG if verbose else logging.INFO if os.isatty(2) else logging.WARNING)
