"""The real stdout, put aside while a command runs: nothing but answers reaches it, whatever an imported library prints.

Meanwhile file descriptor 1 leads to stderr.
"""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from select import POLLOUT, poll

from .context import write_stderr
from .contract.exit_status import ExitStatus

_EVENT_TICK_SECONDS = 0.1
_NEVER_BLOCKS_BYTES = 4096
"""PIPE_BUF: a pipe that is ready for writing takes as much."""


class Stdout:
    """Closing it gives descriptor 1 back."""

    def __init__(self) -> None:
        self._real = os.dup(1)
        self._is_broken = False
        os.dup2(2, 1)

    def close(self) -> None:
        with suppress(OSError, ValueError, AttributeError):  # whatever a library left it as
            sys.stdout.flush()
        os.dup2(self._real, 1)
        os.close(self._real)

    def is_terminal(self) -> bool:
        return os.isatty(self._real)

    def width(self) -> int:
        """Of the terminal, or what one usually has."""
        with suppress(ValueError):
            return int(os.environ.get("COLUMNS", ""))
        return os.get_terminal_size(self._real).columns if self.is_terminal() else 80

    def wants_colour(self) -> bool:
        if os.environ.get("NO_COLOR"):
            return False
        if forced := os.environ.get("FORCE_COLOR"):
            return forced not in ("0", "false")
        return self.is_terminal() and os.environ.get("TERM") != "dumb"

    def write(self, content: bytes, status: int) -> int:
        """The answer. The status is its own, unless it could not be written."""
        return write(self._real, content, status)

    def tell(self, line: bytes, is_over: Callable[[], bool]) -> None:
        """Progress. A reader that does not read must not keep us, and our locks, beyond a signal or timeout."""
        left = line
        while left and not self._is_broken and not is_over():
            if _is_writable(self._real, _EVENT_TICK_SECONDS):
                try:
                    left = left[os.write(self._real, left[:_NEVER_BLOCKS_BYTES]) :]
                except OSError:
                    self._is_broken = True  # the answer will say so, once


def write(descriptor: int, content: bytes, status: int) -> int:
    """Write it all. A reader that has gone changes nothing; any other failure is told on stderr, and is status 1."""
    left = memoryview(content)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            _is_writable(descriptor, None)
        except BrokenPipeError:
            return status
        except OSError as error:
            write_stderr(f"The answer could not be written: {os.strerror(error.errno or errno.EIO)}\n")
            return status or ExitStatus.INTERNAL
    return status


def _is_writable(descriptor: int, seconds: float | None) -> bool:
    watched = poll()
    watched.register(descriptor, POLLOUT)
    return bool(watched.poll(None if seconds is None else seconds * 1000))
