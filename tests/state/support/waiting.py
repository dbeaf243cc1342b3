"""Tests wait for events; these are the ways to. The limits are a safety net, for a busy machine as well."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sampletool.kit.testing.tool import Process

T = TypeVar("T")


def wait_until(look: Callable[[], T], seconds: float = 40) -> T:
    """What it answers, as soon as that is true."""
    deadline = time.monotonic() + seconds
    while not (seen := look()):
        if time.monotonic() > deadline:
            raise TimeoutError("the event never came")
        time.sleep(0.01)
    return seen


def wait_for_pid(path: Path) -> int:
    """That a process has written into a file, with the end of the line."""
    return int(wait_until(lambda: path.exists() and path.read_text().endswith("\n") and path.read_text()))


def wait_for_line(process: Process, text: str) -> None:
    """On its stderr, which ends if the process does."""
    assert process.stderr is not None
    for line in process.stderr:
        if text in line.decode():
            return
    raise AssertionError(f"the process ended and never wrote {text!r}")


def state_of(pid: int) -> str:
    """Return the kernel's letter for what a process does: T stopped, S asleep, Z exited. X if it is not there."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"


def is_alive(pid: int) -> bool:
    return state_of(pid) not in "ZX"


def wait_until_stopped(pid: int) -> bool:
    """Wait until SIGSTOP has stopped it. Return False if it has exited instead."""
    deadline = time.monotonic() + 40
    # One file, read again and again: a client may be stopped a hundred times.
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
