"""Processes that left the group of the run which started them: daemons, detached helpers.

They are known by their environment, which names a directory that nobody could have guessed. Where /proc is missing
they are not found.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from sampletool.kit.safety.processes import pids

_END_SECONDS = 2.0
_POLL_SECONDS = 0.005


def end_strays(directory: Path) -> None:
    """Kill whatever has this directory in its environment, until nothing has."""
    marker = os.fsencode(directory)
    give_up_at = time.monotonic() + _END_SECONDS
    while strays := list(_with_environment(marker)):
        for pid in strays:
            _kill(pid, marker)
        if time.monotonic() >= give_up_at:
            return
        time.sleep(_POLL_SECONDS)


def _kill(pid: int, marker: bytes) -> None:
    """Through a descriptor of the process, looked at again: the number may have gone to somebody else meanwhile."""
    with suppress(OSError):
        process = os.pidfd_open(pid)
        try:
            if _names(pid, marker):
                signal.pidfd_send_signal(process, signal.SIGKILL)
        finally:
            os.close(process)


def _with_environment(marker: bytes) -> Iterator[int]:
    return (pid for pid in pids() if _names(pid, marker))


def _names(pid: int, marker: bytes) -> bool:
    try:
        return marker in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
