"""Standard input is read to its end or not at all."""

import fcntl
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

from sampletool.kit.testing.tool import Ran, Tool, ended


def ended_with_open_stdin(process: subprocess.Popen[bytes]) -> Ran:
    deadline = time.monotonic() + 40
    while process.poll() is None:
        assert time.monotonic() < deadline, "it waits for more"
        time.sleep(0.005)
    return ended(process)


def _unread(process: subprocess.Popen[bytes]) -> int:
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
