"""sampletool/kit/testing/stopping.py: a command is stopped before each of its steps."""

from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing import stopping
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.stopping import interrupt_at_each_step, kill_at_each_step
from sampletool.kit.testing.tool import Tool

_COMMAND = ["config", "set", "a", "1"]

_NAIVE = "open('numbers.txt', 'w').write('12')"
"""A program that writes into the file."""

_REPLACE = """
import os
with open("numbers.tmp", "w") as file:
    file.write("12")
os.rename("numbers.tmp", "numbers.txt")
"""
"""A program that replaces the file."""

_TWO_FILES = "import os\nos.rename('numbers.txt', 'a')\nos.rename('a', 'numbers.txt')"
"""A program that removes the file for a moment."""

_DEAF = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{_REPLACE}"
"""A program that Ctrl-C does not end."""


class OtherTool(Tool):
    """Steps another program instead of the tool."""

    def __init__(self, tool: Tool, program: str) -> None:
        super().__init__(tool.environ, tool.cwd)
        self.program = program

    def stepped(self, *_args: Any, watch: Path) -> SteppedProcess:
        return SteppedProcess(
            ["-c", self.program],
            watch=watch,
            env=self.environ,
            cwd=self.cwd,
            fork_server=fork_server(),
        )


@pytest.mark.leaves_litter
def test_a_safe_command_leaves_the_old_file_or_the_new_one(tool: Tool, workspace: Path) -> None:
    file = workspace / "tool.toml"
    old = file.read_text()

    stopped = kill_at_each_step(tool, *_COMMAND, file=file)

    assert {each.text for each in stopped} == {old, f"{old}a = 1\n"}
    steps = [each.step for each in stopped]
    assert steps.count("os.rename") == 1
    assert "fcntl.flock" in steps
    assert stopped[steps.index("os.rename")].text == old
    assert stopped[steps.index("os.rename") + 1].text == f"{old}a = 1\n"
    assert {each.next_run.status for each in stopped} == {0}


@pytest.mark.leaves_litter
def test_a_program_that_writes_into_the_file_is_refused(tool: Tool) -> None:
    file = tool.cwd / "numbers.txt"
    file.write_text("old")

    with pytest.raises(AssertionError, match=r"opens .*numbers\.txt for writing"):
        kill_at_each_step(OtherTool(tool, _NAIVE), "config", "path", file=file)


@pytest.mark.leaves_litter
def test_a_program_that_removes_the_file_for_a_moment_is_seen(tool: Tool) -> None:
    file = tool.cwd / "numbers.txt"
    file.write_text("old")

    stopped = kill_at_each_step(OtherTool(tool, _TWO_FILES), "config", "path", file=file)

    assert [each.text for each in stopped] == ["old", None]


def test_ctrl_c_ends_a_command_and_the_next_one_need_not_wait(tool: Tool, workspace: Path) -> None:
    file = workspace / "tool.toml"
    old = file.read_text()

    stopped = interrupt_at_each_step(tool, *_COMMAND, file=file)

    assert {each.text for each in stopped} == {old, f"{old}a = 1\n"}
    assert {each.next_run.status for each in stopped} == {0}


def test_a_program_that_ignores_ctrl_c_is_noticed(tool: Tool) -> None:
    file = tool.cwd / "numbers.txt"

    with pytest.raises(AssertionError, match="Ctrl-C before open is ignored"):
        interrupt_at_each_step(OtherTool(tool, _DEAF), "config", "path", file=file)


@pytest.mark.leaves_litter
def test_a_lock_that_stays_held_is_seen_in_the_next_run(tool: Tool, workspace: Path) -> None:
    tool(*_COMMAND)
    lock = workspace / ".tool" / "locks" / "tool.toml.lock"
    file = workspace / "numbers.txt"

    with holding(lock):
        stopped = kill_at_each_step(OtherTool(tool, _REPLACE), *_COMMAND, file=file)

    assert {each.next_run.code for each in stopped} == {"LOCK_HELD"}


@pytest.mark.leaves_litter
def test_a_command_that_never_ends_is_noticed(
    tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stopping, "_MAX_STEPS", 3)
    file = tool.cwd / "numbers.txt"
    endless = "while True: open('numbers.tmp', 'w').close()"

    with pytest.raises(AssertionError, match="more than 3 steps"):
        kill_at_each_step(OtherTool(tool, endless), "config", "path", file=file)


@pytest.mark.leaves_litter
def test_a_missing_file_is_missing_again_before_each_run(tool: Tool) -> None:
    file = tool.cwd / "numbers.txt"

    stopped = kill_at_each_step(OtherTool(tool, _REPLACE), "config", "path", file=file)

    assert [each.text for each in stopped] == [None, None]
    assert file.read_text() == "12"


def test_a_command_without_steps_is_a_mistake_in_the_test(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()

    with pytest.raises(AssertionError, match="does nothing in"):
        kill_at_each_step(
            OtherTool(tool, "pass"), "config", "path", file=tmp_path / "elsewhere" / "a"
        )
