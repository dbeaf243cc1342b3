"""Run a command for a limited time, and leave no process behind: `reaper.py SECONDS COMMAND…`.

A process whose parent exits becomes a child of this process. This process reaps it, as init would:
a test that waits for the end of a process would take a zombie for a running process. In a pid
namespace, this is the first process, and the kernel makes it the init of the namespace.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType

LIMIT_REACHED = 124
"""The exit code if the command did not exit in time."""
_SET_CHILD_SUBREAPER = 36
"""The option PR_SET_CHILD_SUBREAPER of prctl(2)."""
_PAUSE_SECONDS = 0.02


def main() -> int:
    """Run the command that the arguments name, and return its exit code."""
    if os.getpid() != 1:
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1)
    # SIGTERM ends the wait. Then the children are killed, as at the limit.
    signal.signal(signal.SIGTERM, _exit)
    seconds = float(sys.argv[1])
    deadline = time.monotonic() + seconds
    try:
        command = subprocess.Popen(sys.argv[2:])
        return reap_until_end(command.pid, deadline)
    finally:
        end_all_children()


def _exit(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)


def reap_until_end(command: int, deadline: float) -> int:
    """Return the exit code of the command, or LIMIT_REACHED if it has not exited in time.

    If a signal killed the command, return the number of the signal.
    """
    while time.monotonic() < deadline:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == command:
            # The exit code is negative if a signal killed the command.
            return abs(os.waitstatus_to_exitcode(status))
        if pid == 0:
            time.sleep(_PAUSE_SECONDS)
    return LIMIT_REACHED


def end_all_children() -> None:
    """Kill the children until there are none."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    # Read the list again: the children of a killed process become children of this one.
    while pids := children.read_text().split():
        for text in pids:
            pid = int(text)
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


if __name__ == "__main__":
    sys.exit(main())
