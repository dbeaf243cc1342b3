"""The stdin of a program that `run-safely` runs: empty, or all of our own.

The program may be run several times, and each attempt needs the same input. So a requested stdin is
read to its end first. It is not read by default, because an agent may leave a pipe open that never
ends. But input must never get lost without a word.
"""

import array
import fcntl
import os
import stat
import termios
from pathlib import Path

from ..kit.contract.errors import InvalidValues, Mistake
from ..kit.safety.signals import Signals
from ..kit.stdin import stdin_blocks

_STDIN = 0


def refuse_unread_stdin() -> None:
    """Raise InvalidValues if there is input that the program would not get."""
    if has_unread_stdin():
        mistake = Mistake(
            param="--stdin",
            code="MISSING",
            message="There is input on stdin, which the program would not get",
            suggestion="Pass --stdin to hand it to the program, or redirect stdin: `</dev/null`.",
        )
        raise InvalidValues(mistake)


def has_unread_stdin() -> bool:
    """Return whether stdin is a file, a pipe or a socket with data that can be read now."""
    try:
        mode = os.fstat(_STDIN).st_mode
        if stat.S_ISREG(mode):
            return os.lseek(_STDIN, 0, os.SEEK_CUR) < os.fstat(_STDIN).st_size
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            waiting_bytes = array.array("i", [0])
            fcntl.ioctl(_STDIN, termios.FIONREAD, waiting_bytes)
            return waiting_bytes[0] > 0
    except OSError:
        # It is closed, or open only for writing. Either way, there is nothing to lose.
        return False
    return False


def save_stdin(path: Path, signals: Signals) -> None:
    """Write all of stdin to a new file."""
    with path.open("xb") as file:
        for block in stdin_blocks(signals):
            file.write(block)
