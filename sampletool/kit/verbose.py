"""What --verbose, or waiting at a terminal, shows of locks: the log of safety/lock.py, on stderr."""

import logging
import os

from .context import Context
from .safety.lock import log


class _Lines(logging.Handler):
    def __init__(self, context: Context) -> None:
        super().__init__()
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        self._context.say(record.getMessage())


def show_locks(context: Context) -> None:
    """All that happens to a lock, or at a terminal what it waits for."""
    log.handlers[:] = [_Lines(context)]
    log.setLevel(logging.DEBUG if context.options.get("verbose") else logging.INFO if os.isatty(2) else logging.WARNING)
