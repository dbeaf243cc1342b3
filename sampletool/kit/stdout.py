"""The real stdout, which only responses reach, and stderr.

While a command runs, file descriptor 1 leads to stderr. So a library that prints something, or a
child process that inherits the descriptor, cannot spoil the response.
"""

import os
import sys
from contextlib import suppress
from typing import Any

from .colors import wants_color
from .contract.errors import SIGNAL_BASE, ExitStatus
from .contract.response import Format, Screen, json_line
from .safety.signals import Signals

STDOUT = 1
"""The file descriptor of stdout."""
STDERR = 2
"""The file descriptor of stderr."""

_USUAL_WIDTH = 80


class Stdout:
    """The real stdout of this process, under a new descriptor. Closing it restores descriptor 1."""

    def __init__(self, signals: Signals) -> None:
        """Let descriptor 1 lead to stderr from now on.

        Raise OSError if this process has too many open files.
        """
        self._descriptor = os.dup(STDOUT)
        self._signals = signals
        self._can_write_events = True
        os.dup2(STDERR, STDOUT)

    def close(self) -> None:
        """Let descriptor 1 lead to the real stdout again."""
        # First, so that what a library printed and did not flush goes to stderr. The library may
        # have left sys.stdout closed, or replaced it with anything.
        with suppress(OSError, ValueError, AttributeError):
            sys.stdout.flush()
        os.dup2(self._descriptor, STDOUT)
        os.close(self._descriptor)

    def take_descriptor(self) -> int:
        """Return a descriptor of the real stdout, for a command that speaks a protocol there.

        The caller closes it. The response of the command goes to stderr.
        """
        taken = os.dup(self._descriptor)
        os.dup2(STDERR, self._descriptor)
        return taken

    def is_terminal(self) -> bool:
        """Return whether a person sees this stdout."""
        return os.isatty(self._descriptor)

    def is_stderr(self) -> bool:
        """Return whether stdout and stderr are the same file, as after `2>&1`."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.fstat(STDERR))
        except OSError:
            return False

    def default_format(self) -> Format:
        """Return the format for a caller who has not chosen one."""
        return "text" if self.is_terminal() else "json"

    def width(self) -> int:
        """Return the number of columns for a text such as help."""
        columns = os.environ.get("COLUMNS", "")
        if columns.isdecimal() and int(columns) > 0:
            return int(columns)
        if not self.is_terminal():
            return _USUAL_WIDTH
        measured = os.get_terminal_size(self._descriptor).columns
        return measured if measured > 0 else _USUAL_WIDTH

    def screen(self, color_option: str | None) -> Screen:
        """Return what is known about the terminal. `color_option` is the value of --color."""
        width = None
        # Text for a dumb terminal is not broken into lines: the program that reads it, such as an
        # editor, has a width of its own.
        if self.is_terminal() and os.environ.get("TERM") != "dumb":
            width = self.width()
        return Screen(
            width=width,
            color=wants_color(self._descriptor, color_option),
            stderr_color=wants_color(STDERR, color_option),
        )

    def write(self, content: bytes, exit_code: int) -> int:
        """Write the response, and return the exit code. See `write_response`."""
        return write_response(self._descriptor, content, exit_code, self._signals)

    def write_event(self, event: dict[str, Any]) -> None:
        """Write an event as one line of JSON. After a failure, write no more events."""
        if not self._can_write_events:
            return
        try:
            has_written = self._signals.write(self._descriptor, json_line(event))
        except OSError:
            # Writing the response will fail too, and that failure is reported.
            has_written = False
        self._can_write_events = has_written


class NoStdout:
    """What a command has in place of a stdout if its response is returned to a caller in Python."""

    def take_descriptor(self) -> int:
        """Return a copy of descriptor 1."""
        return os.dup(STDOUT)

    def default_format(self) -> Format:
        """Return the format that programs read."""
        return "json"

    def write_event(self, event: dict[str, Any]) -> None:
        """Do nothing: nothing reads events."""


def write_response(descriptor: int, content: bytes, exit_code: int, signals: Signals) -> int:
    """Write the response, and return the exit code of this process.

    If the reader has closed its end, as `head` does, the exit code stays as it is. If writing fails
    for another reason, print a line on stderr, and turn the exit code 0 into a failure.
    """
    try:
        has_written = signals.write(descriptor, content)
        if has_written:
            return exit_code
        # A signal came, or the time limit passed, and the reader still takes nothing.
        problem = "nothing reads it, and the command has to stop"
        if signals.received is not None:
            failure = SIGNAL_BASE + signals.received
        else:
            failure = ExitStatus.TIMEOUT
    except BrokenPipeError:
        return exit_code
    except OSError as error:
        problem = os.strerror(error.errno) if error.errno else "unknown error"
        failure = ExitStatus.INTERNAL
    write_stderr(f"The response could not be written: {problem}\n", signals)
    return failure if exit_code == 0 else exit_code


def write_stderr(text: str, signals: Signals) -> None:
    """Write a text for people. A failure changes nothing."""
    with suppress(OSError):
        signals.write(STDERR, text.encode("utf-8", "backslashreplace"))
