"""Help the tests of this part: wait for events, look at processes, and declare targets.

Only processes whose pid is known are looked at, because others may belong to other tests.
"""

import json
import os
import select
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from sampletool.kit.safety.atomic_file import opened
from sampletool.kit.safety.lock_record import describe_me, read_record, write_record
from sampletool.kit.safety.processes import members_of_group
from sampletool.kit.testing.tool import Process, Ran, Tool

T = TypeVar("T")

PATIENCE_SECONDS = 40.0
"""How long to wait for an event, on a machine that has much else to do."""

TIMES = (0.5, 2, 8, 32)
"""Values for --timeout, to be tried until a command comes as far as a test needs.

Half a second is enough on a fast machine, but not on a slow one.
"""


def wait_until(look: Callable[[], T], seconds: float = PATIENCE_SECONDS) -> T:
    """Call `look` until it returns something, and return that."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "nothing was found in time"
        time.sleep(0.005)
    return found


def pids_in(path: Path) -> list[int]:
    """Return the pids that processes have written to a file, each on a line of its own."""
    if not path.exists():
        return []
    lines = path.read_text().splitlines(keepends=True)
    # The last line may be written at this moment.
    return [int(line) for line in lines if line.endswith("\n")]


def pid_in(path: Path) -> int:
    """Wait for the first pid in a file, and return it."""
    return wait_until(lambda: pids_in(path))[0]


def children_of(pid: int) -> list[int]:
    """Return the pids of the children of a process. It may have exited."""
    try:
        return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_alive(pid: int) -> bool:
    """Return whether a process runs. A zombie does not."""
    return state_of(pid) not in ("", "Z")


def state_of(pid: int) -> str:
    """Return the state of a process, such as T if it is stopped, or "" if it has exited."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def wait_for_pids(path: Path, count: int) -> None:
    """Wait until at least this many processes have written their pids."""
    wait_until(lambda: len(pids_in(path)) >= count)


def are_gone(pids: list[int]) -> bool:
    """Wait until these processes and their groups have exited, and return True."""
    wait_until(
        lambda: not any(is_alive(pid) or members_of_group(pid) for pid in pids),
        PATIENCE_SECONDS / 2,
    )
    return True


def at_work(name: str = "") -> str:
    """Return shell commands that write the pid of the shell, and wait for a file `go`."""
    wait = f'until test -e "$TOOL_WORKSPACE/go{name}"; do sleep 0.02; done'
    return f'echo $$ >> "$TOOL_WORKSPACE/pids"; {wait}'


def together(count: int) -> str:
    """Return shell commands that wait until this many shells have come to them."""
    return (
        'touch "$TOOL_WORKSPACE/at-$$"; '
        f'until test $(ls "$TOOL_WORKSPACE" | grep -c ^at-) -ge {count}; do sleep 0.02; done'
    )


def kill_all(pids: list[int]) -> None:
    for pid in pids:
        if is_alive(pid):
            os.kill(pid, 9)


def out_of_time(tool: Tool, *call: str) -> Ran:
    """Run a command until a --timeout ends it while a job of it is `at_work`."""
    for seconds in TIMES:
        ran = tool(*call, "--timeout", f"{seconds}s")
        if pids_in(tool.cwd / "pids"):
            return ran
    raise AssertionError("no job has come to its work")


UNTIL_GO = 'touch started; until test -e "$TOOL_WORKSPACE/go"; do sleep 0.02; done'
"""Shell commands that create a file `started`, and wait for a file `go`."""


def start(tool: Tool, *args: str, name: str = "a") -> Process:
    """Start a command, and wait until the target of this name has created a file `started`."""
    process = tool.start(*args)
    wait_until(lambda: list(tool.cwd.glob(f".tool/tmp/*/*/{name}/started")))
    return process


def declare(tool: Tool, text: str) -> None:
    (tool.cwd / "tool.toml").write_text(text)


def target(name: str, script: str, *, needs: str = "", inputs: str = "", output: str = "x") -> str:
    return (
        f"[target.{name}]\nrun = ['/bin/sh', '-c', '''{script}''']\noutputs = ['{output}']\n"
        f"needs = [{needs}]\ninputs = [{inputs}]\n"
    )


def statuses(data: Any) -> dict[str, str]:
    return {entry["name"]: entry["status"] for entry in data["targets"]}


def reason(ran: Ran, name: str) -> str:
    return str(next(entry.get("reason") for entry in ran.data["targets"] if entry["name"] == name))


def read_lines(process: Process, count: int) -> list[Any]:
    """Return the first lines that a process prints. Each is JSON."""
    assert process.stdout is not None
    content, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while content.count(b"\n") < count:
        readable, _, _ = select.select(
            [process.stdout], [], [], max(0.0, deadline - time.monotonic())
        )
        assert readable, f"only this came: {content!r}"
        content += os.read(process.stdout.fileno(), 65536)
    return [json.loads(line) for line in content.splitlines()[:count]]


def usual_ms(lock_path: Path) -> int | None:
    """Return how long the lock is usually held, according to its lock file."""
    with opened(lock_path, os.O_RDONLY) as descriptor:
        record = read_record(descriptor)
    return None if record is None else record.usual_ms


def set_usual_ms(lock_path: Path, milliseconds: int) -> None:
    """Write into the lock file that the lock is free, and usually held for this long."""
    with opened(lock_path, os.O_RDWR | os.O_CREAT) as descriptor:
        write_record(descriptor, describe_me(), usual_ms=milliseconds, state="free")
