"""The real stdout, put aside while a command runs: nothing but answers reaches it, whatever an imported library prints.

Meanwhile file descriptor 1 leads to stderr.
"""

import errno
import os
import sys
from contextlib import suppress

from .context import write_stderr
from .contract.answer import Screen
from .contract.errors import ExitStatus
from .safety.signals import Signals

_USUAL_WIDTH = 80


class Stdout:
    """Closing it gives descriptor 1 back."""

    def __init__(self, signals: Signals) -> None:
        self._real, self._signals = os.dup(1), signals
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
        return write(self._real, content, status, self._signals)

    def tell(self, line: bytes) -> None:
        """Progress."""
        if not self._is_broken:
            try:
                self._is_broken = not self._signals.write(self._real, line)
            except OSError:
                self._is_broken = True  # the answer will say so, once


def write(descriptor: int, content: bytes, status: int, signals: Signals) -> int:
    """Write it all. A reader that has gone changes nothing; any other failure is a line on stderr, and status 1."""
    try:
        if signals.write(descriptor, content):
            return status
        problem = "nobody reads it, and the call is over"
        failed = 128 + signals.received if signals.received else ExitStatus.TIMEOUT
    except BrokenPipeError:
        return status
    except OSError as error:
        problem, failed = os.strerror(error.errno or errno.EIO), ExitStatus.INTERNAL
    write_stderr(f"The answer could not be written: {problem}\n", signals)
    return status or failed


def _wants_colour(descriptor: int) -> bool:
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced not in ("0", "false")
    return os.isatty(descriptor) and os.environ.get("TERM") != "dumb"
