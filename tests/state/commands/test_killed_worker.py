"""After kill -9 of a worker, its successor ends whatever the command of the worker has started."""

import sys
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool
from tests.state.support.waiting import is_alive, wait_for_pid

_START_CHILD = "import subprocess, sys; subprocess.run(['sh', '-c', sys.argv[1]])"
"""A program that starts a shell command without its own descriptors, as Python always does."""

_WAIT = (
    '[ "$TOOL_TASK_GENERATION" = 2 ] && exit; '
    "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"
)
"""A shell command that ignores SIGTERM, and runs until it is killed. For generation 2, it exits."""


def work(argv: list[str]) -> list[str]:
    return ["task", "work", "mail", "--until-empty", "--", *argv]


@pytest.mark.leaves_litter
@pytest.mark.parametrize(
    "argv",
    [
        [sys.executable, "-c", _START_CHILD, _WAIT],
        ["sh", "-c", f"({_WAIT}) & wait"],
        ["setsid", "-w", sys.executable, "-c", _START_CHILD, _WAIT],
    ],
    ids=["child without the lock", "child with the lock", "group of its own"],
)
def test_the_children_of_an_orphaned_command_do_not_run_beside_its_successor(
    tool: Tool,
    workspace: Path,
    argv: list[str],
) -> None:
    child_pid = start_and_kill_worker(tool, workspace, argv)

    ran = tool(*work(argv))

    assert ran.data["finished"] == 1
    assert not is_alive(child_pid)


@pytest.mark.leaves_litter
@pytest.mark.parametrize("variable", ["HOME", "TOOL_STATE_DIR", "XDG_STATE_HOME"])
def test_a_successor_with_another_home_ends_the_command_of_a_killed_worker(
    tool: Tool,
    workspace: Path,
    tmp_path: Path,
    variable: str,
) -> None:
    argv = [sys.executable, "-c", _START_CHILD, _WAIT]
    child_pid = start_and_kill_worker(tool, workspace, argv)
    other_home = tmp_path / "other"
    other_home.mkdir(mode=0o700)
    # The variables that would win over HOME are set in tests.
    for name in ("XDG_STATE_HOME", "TOOL_STATE_DIR"):
        tool.environ.pop(name, None)
    tool.environ[variable] = str(other_home)

    ran = tool(*work(argv))

    assert ran.data["finished"] == 1
    assert not is_alive(child_pid)
    warnings = [warning["code"] for warning in ran.response["warnings"]]
    assert "ORPHAN_ENDED" in warnings


def start_and_kill_worker(tool: Tool, workspace: Path, argv: list[str]) -> int:
    """Kill a worker and end its lease. Return the pid of the process that is left running."""
    tool("task", "add", "mail", "x", "--id", "a")
    worker = tool.start(*work(argv))
    child_pid = wait_for_pid(workspace / "pid")
    worker.kill()
    worker.wait()
    assert is_alive(child_pid)
    assert tool("task", "renew", "a:1", "--lease", "1ms").status == 0
    return child_pid
