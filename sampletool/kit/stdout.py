"""The real stdout, put aside while a command runs: nothing but answers reaches it, whatever an imported library prints.

Meanwhile file descriptor 1 leads to stderr.
"""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from select import PIPE_BUF, POLLOUT, poll

from .context import write_stderr
from .contract.answer import Screen
from .contract.errors import ExitStatus

_USUAL_WIDTH = 80
_STALLED_SECONDS = 0.25
"""When the call is over, a reader that takes nothing for so long gets no more."""


class Stdout:
    """Closing it gives descriptor 1 back. What is called `over` says with which status the call has to end, or 0."""

    def __init__(self, over: Callable[[], int]) -> None:
        self._real, self._over = os.dup(1), over
        self._is_broken = False
        os.dup2(2, 1)

    def take(self) -> int:
        """The real one, for a command that speaks a protocol there: its answer goes to stderr."""
        taken = os.dup(self._real)
        os.dup2(2, self._real)
        return taken

    def close(self) -> None:
        with suppress(OSError, ValueError, AttributeError):  # whatever a library left it as
            sys.stdout.flush()
        os.dup2(self._real, 1)
        os.close(self._real)

    def is_terminal(self) -> bool:
        return os.isatty(self._real)

    def width(self) -> int:
        given = os.environ.get("COLUMNS", "")
        measured = os.get_terminal_size(self._real).columns if self.is_terminal() else 0
        return (int(given) if given.isdecimal() else measured) or _USUAL_WIDTH

    def screen(self) -> Screen:
        """A dumb terminal is taken as a pipe is: what reads it has a width of its own."""
        is_drawn = self.is_terminal() and os.environ.get("TERM") != "dumb"
        return Screen(self.width() if is_drawn else None, _wants_colour(self._real), _wants_colour(2))

    def write(self, content: bytes, status: int) -> int:
        """The answer. The status is its own, unless it could not be written."""
        return write(self._real, content, status, self._over)

    def tell(self, line: bytes) -> None:
        """Progress."""
        if not self._is_broken:
            try:
                self._is_broken = not _write_all(self._real, line, self._over)
            except OSError:
                self._is_broken = True  # the answer will say so, once


def write(descriptor: int, content: bytes, status: int, over: Callable[[], int] = lambda: 0) -> int:
    """Write it all. A reader that has gone changes nothing; any other failure is a line on stderr, and status 1."""
    try:
        if _write_all(descriptor, content, over):
            return status
        problem, failed = "nobody reads it, and the call is over", over()
    except BrokenPipeError:
        return status
    except OSError as error:
        problem, failed = os.strerror(error.errno or errno.EIO), ExitStatus.INTERNAL
    write_stderr(f"The answer could not be written: {problem}\n")
    return status or failed


def _write_all(descriptor: int, content: bytes, over: Callable[[], int]) -> bool:
    """A reader that does not read must not keep us, and our locks, beyond a signal or timeout."""
    left = memoryview(content)
    watched = poll()
    watched.register(descriptor, POLLOUT)
    was_over = False
    while left:
        if not watched.poll(_STALLED_SECONDS * 1000):
            if was_over:
                return False
            was_over = bool(over())
            continue
        was_over = False
        # A pipe that is ready for writing takes PIPE_BUF bytes without blocking, unless another writer was faster.
        with suppress(BlockingIOError):
            left = left[os.write(descriptor, left[:PIPE_BUF]) :]
    return True


def _wants_colour(descriptor: int) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced not in ("0", "false")
    return os.isatty(descriptor) and os.environ.get("TERM") != "dumb"
