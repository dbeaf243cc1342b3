"""Show what the locks of the library report: who holds a lock that this command waits for."""

import logging
import os
from collections.abc import Callable

from .safety.lock import log


def show_lock_notices(notice: Callable[[str], None], *, verbose: bool) -> None:
    """Call `notice` from now on with what happens to locks: everything, or only long waits."""
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
        self._notice(record.getMessage())
