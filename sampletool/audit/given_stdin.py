"""The stdin of a program that `run-safely` runs.

With `--stdin`, the program gets all of our stdin. It may be run several times, and each attempt
needs the same input. So our stdin is saved to a file before the first attempt.

By default, the stdin of the program is empty. Our own stdin is not read then, because an agent may
have left a pipe open, and reading would wait permanently. But if input is waiting, the user may
want the program to get it. So the command reports this input, instead of losing it silently.
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
    """Raise InvalidValues if input is waiting on stdin, because the program would not get it."""
    if has_unread_stdin():
        mistake = Mistake(
            param="--stdin",
            code="MISSING",
            message="There is input on stdin, which the program would not get",
            suggestion="Pass --stdin to hand it to the program, or redirect stdin: `</dev/null`.",
        )
        raise InvalidValues(mistake)


def has_unread_stdin() -> bool:
    """Return whether input is waiting on stdin. Find out without reading or waiting.

    Only a file, a pipe and a socket can have such input. A terminal counts as having none.
    """
    try:
        mode = os.fstat(_STDIN).st_mode
        if stat.S_ISREG(mode):
            return os.lseek(_STDIN, 0, os.SEEK_CUR) < os.fstat(_STDIN).st_size
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            # FIONREAD stores the number of bytes that can be read now.
            waiting_bytes = array.array("i", [0])
            fcntl.ioctl(_STDIN, termios.FIONREAD, waiting_bytes)
            return waiting_bytes[0] > 0
    except OSError:
        # Stdin is closed, or open only for writing. Either way, no input can get lost.
        return False
    return False


def save_stdin(path: Path, signals: Signals) -> None:
    """Copy stdin to a new file, until stdin ends."""
    with path.open("xb") as file:
        for block in stdin_blocks(signals):
            file.write(block)
