"""Show the log messages of the lock library to the user, such as who holds a lock."""

import logging
import os
from collections.abc import Callable

from .safety.lock import log


def show_lock_notices(notice: Callable[[str], None], *, verbose: bool) -> None:
    """Pass the messages of the lock library to `notice` from now on.

    With `verbose`, this is each step of each lock. At a terminal, it is each wait. Otherwise, it
    is only warnings.
    """
    # Replace the handler of an earlier command, which `tool mcp` ran in the same process.
    log.handlers[:] = [_NoticeHandler(notice)]
    if verbose:
        log.setLevel(logging.DEBUG)
    elif os.isatty(2):
        log.setLevel(logging.INFO)
    else:
        log.setLevel(logging.WARNING)


class _NoticeHandler(logging.Handler):
    """A handler that passes each message to a function."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        super().__init__()
        self._notice = notice

    def emit(self, record: logging.LogRecord) -> None:
        """Pass the message of the record to the function."""
        self._notice(record.getMessage())
