"""Run a command for at most some seconds, and leave no process behind: `reaper.py SECONDS COMMAND…`.

What loses its parent becomes a child of this process, which reaps it as init would: a zombie looks alive to a test that
waits for its end. As the first process of a pid namespace it is init.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

LIMIT_REACHED = 124
"""The exit code where the command was ended at its limit."""
_SET_CHILD_SUBREAPER = 36  # of prctl(2)
_PAUSE_SECONDS = 0.02


def main() -> int:
    if os.getpid() != 1:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    # SIGTERM ends the wait, and then the children are killed as at the limit.
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    try:
        command = subprocess.Popen(sys.argv[2:])
        return reap_until_end(command.pid, time.monotonic() + float(sys.argv[1]))
    finally:
        end_all_children()


def reap_until_end(command: int, deadline: float) -> int:
    """Return the command's exit code, or LIMIT_REACHED if it has not exited in time."""
    while time.monotonic() < deadline:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == command:
            return abs(os.waitstatus_to_exitcode(status))
        if pid == 0:
            time.sleep(_PAUSE_SECONDS)
    return LIMIT_REACHED


def end_all_children() -> None:
    """Kill the children until there are none. Each that exits may hand over children of its own."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while pids := children.read_text().split():
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(int(pid), 0)


if __name__ == "__main__":
    sys.exit(main())
