"""Wait for events. The limits are a safety net, also on a busy machine."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sampletool.kit.testing.tool import Process

T = TypeVar("T")


def wait_until(look: Callable[[], T], seconds: float = 40) -> T:
    """Call this function until it returns something true, and return that."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise TimeoutError("the event never came")
        time.sleep(0.01)


def wait_for_pid(path: Path) -> int:
    """Wait until a process has written its pid to a file, with a newline, and return it."""

    def read_line() -> str:
        if not path.exists():
            return ""
        text = path.read_text()
        return text if text.endswith("\n") else ""

    return int(wait_until(read_line))


def wait_for_line(process: Process, text: str) -> None:
    """Wait until the process has written this text to stderr."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line.decode():
            return
    raise AssertionError(f"the process ended and never wrote {text!r}")


def state_of(pid: int) -> str:
    """Return the state of a process as a letter: T stopped, S asleep, Z exited, X gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def is_alive(pid: int) -> bool:
    return state_of(pid) not in "ZX"


def wait_until_stopped(pid: int) -> bool:
    """Wait until SIGSTOP has stopped it. Return False if it has exited instead."""
    deadline = time.monotonic() + 40
    # Open the file once: a client may be stopped a hundred times.
    try:
        stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        while True:
            try:
                state = os.pread(stat, 4096, 0).rpartition(b")")[2].split()[0]
            except ProcessLookupError:
                return False
            if state in (b"T", b"Z"):
                return state == b"T"
            assert time.monotonic() < deadline, "it was never stopped"
            time.sleep(0.001)
    finally:
        os.close(stat)
