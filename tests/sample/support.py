"""What tests of this part wait for, and which processes they look at: those they know by pid, nobody else's."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sampletool.kit.safety.processes import members_of_group

T = TypeVar("T")
PATIENCE_SECONDS = 40.0
"""For a machine that has much else to do."""


def wait_until(look: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """Look again until there is something; what there is."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.005)
    return found


def pids_in(path: Path) -> list[int]:
    """The numbers that processes have written, each with the end of its line."""
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    return [int(line) for line in lines if line.endswith("\n")]


def pid_in(path: Path) -> int:
    return wait_until(lambda: pids_in(path))[0]


def children_of(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid: int) -> bool:
    """Neither gone nor a zombie that nobody has reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def are_gone(pids: list[int]) -> bool:
    """They, and all of their groups; a moment is allowed, for the end may be under way."""
    wait_until(lambda: not any(is_alive(pid) or members_of_group(pid) for pid in pids), PATIENCE_SECONDS / 2)
    return True


def at_work(name: str = "") -> str:
    """For a shell script: says that it works, by the pid of its group, until a file `go` comes."""
    return f'echo $$ >> "$TOOL_WORKSPACE/pids"; until test -e "$TOOL_WORKSPACE/go{name}"; do sleep 0.02; done'


def together(count: int) -> str:
    """For a shell script: goes on when so many have come to this line."""
    return (
        'touch "$TOOL_WORKSPACE/at-$$"; '
        f'until test $(ls "$TOOL_WORKSPACE" | grep -c ^at-) -ge {count}; do sleep 0.02; done'
    )


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, 9)
