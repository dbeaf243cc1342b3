"""What tests of this part wait for, and which processes they look at: those they know by pid, nobody else's."""

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
"""For a machine that has much else to do."""
TIMES = (0.5, 2, 8, 32)
"""For --timeout, one after the other until a call has come as far as a test needs it: half a second is no time on a
slow machine, and enough on a fast one."""


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
    return state_of(pid) not in ("", "Z")


def state_of(pid: int) -> str:
    """Return the letter that the kernel has for the state of the process: T if it is stopped; none if it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


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


def out_of_time(tool: Tool, *call: str) -> Ran:
    """Run the call until a --timeout ends it while a command is `at_work`, with more time each time."""
    for seconds in TIMES:
        ran = tool(*call, "--timeout", f"{seconds}s")
        if pids_in(tool.cwd / "pids"):
            return ran
    raise AssertionError("no command of it came to its work")


UNTIL_GO = 'touch started; until test -e "$TOOL_WORKSPACE/go"; do sleep 0.02; done'
"""For a shell script: says that it has started, and waits until a file `go` comes."""


def start(tool: Tool, *args: str, name: str = "a") -> Process:
    """A call in which the target of this name has just made a file `started`."""
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
    """The first lines of JSON that it prints."""
    assert process.stdout is not None
    content, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while content.count(b"\n") < count:
        readable, _, _ = select.select([process.stdout], [], [], max(0.0, deadline - time.monotonic()))
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
