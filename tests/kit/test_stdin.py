"""Standard input is read to its end or not at all."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.tool import COMMAND, Process, Ran, Tool, ended


def ended_with_open_stdin(process: Process) -> Ran:
    deadline = time.monotonic() + 40
    while process.poll() is None:
        assert time.monotonic() < deadline, "it waits for more"
        time.sleep(0.005)
    return ended(process)


def _unread(process: Process) -> int:
    """How many bytes of its stdin the process has not read yet."""
    count = bytearray(4)
    assert process.stdin is not None
    fcntl.ioctl(process.stdin, termios.FIONREAD, count)
    return int.from_bytes(count, sys.byteorder)


def test_an_interrupted_producer_s_half_is_not_taken_for_the_whole(tool: Tool, workspace: Path) -> None:
    process = tool.start("config", "set", "k", "-")
    assert process.stdin is not None
    process.stdin.write(b"first half of a long")
    process.stdin.flush()
    while _unread(process):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    ran = ended_with_open_stdin(process)

    assert (ran.status, ran.code) == (-signal.SIGINT, "INTERRUPTED")
    assert "half" not in (workspace / "tool.toml").read_text()
    assert tool("config", "get", "k").status == 5


def test_the_time_for_the_call_ends_the_wait_for_stdin(tool: Tool, workspace: Path) -> None:
    process = tool.start("config", "set", "k", "-", "--timeout", "300ms")

    assert ended_with_open_stdin(process).status == 10
    assert "k" not in (workspace / "tool.toml").read_text().split()


_LATE = """
import os, signal
from sampletool.kit import stdin
from sampletool.kit.safety.signals import Signals

class Late(Signals):
    "The signal comes between the wait and the read."
    def wait(self, seconds, descriptors=()):
        self.received = signal.SIGINT
        return [0]

print(list(stdin.stdin_blocks(Late())))
"""


@pytest.mark.parametrize("content", [b"", b"half"])
def test_a_signal_that_comes_when_stdin_ends_is_seen(content: bytes) -> None:
    ran = run_python("-c", _LATE, stdin=content, check=False)

    assert ran.stdout == ""
    assert "Interrupted" in ran.stderr


@pytest.mark.parametrize("content", ["", "\n", "\r\n", "closed"])
def test_an_empty_or_closed_stdin_is_no_value_unless_it_is_allowed(tool: Tool, workspace: Path, content: str) -> None:
    def run(*options: str) -> Ran:
        call = ["config", "set", "api.token", "-", *options]
        if content != "closed":
            return ended(tool.start(*call), content.encode())
        # A fresh interpreter: it is the one that finds no stdin.
        closing = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND]
        return ended(tool.start_fresh(*call, program=closing, stdin=subprocess.DEVNULL))

    tool("config", "set", "api.token", "-", stdin=b"hunter2")

    refused = run()

    assert (refused.status, refused.code) == (2, "VALIDATION_ERROR")
    assert "--allow-empty" in refused.error["suggestion"]
    assert tool("config", "get", "api.token", "--reveal").data["value"] == "hunter2"
    assert run("--allow-empty").data["effect"] == "updated"
    assert tool("config", "get", "api.token", "--reveal").data["value"] == ""


@pytest.mark.parametrize("target", ["file", "pipe"])
def test_a_stdin_that_is_open_only_for_writing_is_said_to_be_that(tool: Tool, workspace: Path, target: str) -> None:
    """Naive: a file gives "bad file descriptor", and the wait for a pipe does not end."""
    if target == "file":
        read_end, write_end = -1, os.open(workspace / "out", os.O_WRONLY | os.O_CREAT)
    else:
        read_end, write_end = os.pipe()
    process = tool.start("config", "set", "k", "-", "--timeout", "20s", stdin=write_end)
    os.close(write_end)

    ran = ended_with_open_stdin(process)

    if read_end >= 0:
        os.close(read_end)
    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert ran.error["message"] == "stdin cannot be read: it is open only for writing."
