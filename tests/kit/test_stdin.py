"""sampletool/kit/stdin.py: stdin is read to its end, or not at all."""

import fcntl
import os
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.tool import COMMAND, Process, Ran, Tool, ended
from sampletool.kit.testing.waiting import wait_until


def _end_with_open_stdin(process: Process) -> Ran:
    """Wait until the process ends by itself, while its stdin stays open."""
    wait_until(lambda: process.poll() is not None)
    return ended(process)


def _unread_bytes(process: Process) -> int:
    """Return how many bytes of its stdin the process has not read yet."""
    count = bytearray(4)
    assert process.stdin is not None
    fcntl.ioctl(process.stdin, termios.FIONREAD, count)
    return int.from_bytes(count, sys.byteorder)


def test_the_half_of_an_interrupted_text_is_not_taken_for_the_whole(
    tool: Tool,
    workspace: Path,
) -> None:
    process = tool.start("config", "set", "k", "-")
    assert process.stdin is not None
    process.stdin.write(b"first half of a long")
    process.stdin.flush()
    wait_until(lambda: _unread_bytes(process) == 0)

    process.send_signal(signal.SIGINT)
    ran = _end_with_open_stdin(process)

    assert (ran.status, ran.code) == (-signal.SIGINT, "INTERRUPTED")
    assert "half" not in (workspace / "tool.toml").read_text()
    key_not_found = 5
    assert tool("config", "get", "k").status == key_not_found


def test_the_timeout_ends_the_wait_for_stdin(tool: Tool, workspace: Path) -> None:
    process = tool.start("config", "set", "k", "-", "--timeout", "300ms")

    ran = _end_with_open_stdin(process)

    assert ran.code == "TIMEOUT"
    assert "k" not in (workspace / "tool.toml").read_text().split()


_SIGNAL_BEFORE_READING = """
import os, signal
from sampletool.kit import stdin
from sampletool.kit.safety.signals import Signals

class LateSignals(Signals):
    "The signal comes between the wait and the read."
    def wait(self, seconds, descriptors=()):
        self.received = signal.SIGINT
        return [0]

print(list(stdin.stdin_blocks(LateSignals())))
"""


@pytest.mark.parametrize("content", [b"", b"half"])
def test_a_signal_that_comes_when_stdin_ends_is_seen(content: bytes) -> None:
    completed = run_python("-c", _SIGNAL_BEFORE_READING, stdin=content, check=False)

    assert completed.stdout == ""
    assert "Interrupted" in completed.stderr


_WAIT_IN_VAIN_ONCE = """
import os
from sampletool.kit import stdin
from sampletool.kit.safety.signals import Signals

reader, writer = os.pipe()
os.dup2(reader, 0)
# Without this, a read that comes too early would never end.
os.set_blocking(0, False)

class ImpatientSignals(Signals):
    "The first wait ends although there is nothing to read."
    waits = 0
    def wait(self, seconds, descriptors=()):
        self.waits += 1
        if self.waits == 1:
            return []
        if self.waits == 2:
            os.write(writer, b"late")
            os.close(writer)
        return super().wait(seconds, descriptors)

print(list(stdin.stdin_blocks(ImpatientSignals())))
"""


def test_a_wait_that_ends_without_input_is_not_the_end_of_stdin() -> None:
    completed = run_python("-c", _WAIT_IN_VAIN_ONCE, check=False)

    assert completed.stdout == "[b'late']\n"


# Content


@pytest.mark.parametrize("content", [b"", b"\n", b"\r\n"])
@pytest.mark.usefixtures("workspace")
def test_an_empty_stdin_is_refused_unless_it_is_allowed(tool: Tool, content: bytes) -> None:
    tool("config", "set", "api.token", "-", stdin=b"hunter2")

    refused = tool("config", "set", "api.token", "-", stdin=content)

    assert (refused.status, refused.code) == (2, "VALIDATION_ERROR")
    assert refused.error["message"] == "stdin is empty."
    assert "--allow-empty" in refused.error["suggestion"]
    assert tool("config", "get", "api.token", "--reveal").data["value"] == "hunter2"

    accepted = tool("config", "set", "api.token", "-", "--allow-empty", stdin=content)

    assert accepted.data["effect"] == "updated"
    assert tool("config", "get", "api.token", "--reveal").data["value"] == ""


@pytest.mark.usefixtures("workspace")
def test_a_closed_stdin_is_empty(tool: Tool) -> None:
    close_stdin = ["sh", "-c", 'exec "$@" <&-', "sh", *COMMAND]

    # A fresh interpreter, which finds stdin closed.
    process = tool.start_fresh(
        "config",
        "set",
        "a",
        "-",
        program=close_stdin,
        stdin=subprocess.DEVNULL,
    )
    ran = ended(process)

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert ran.error["message"] == "stdin is empty."


_READ_AT_MOST_2_MIB = """
import sys
from sampletool.kit import stdin
from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.safety.signals import Signals
try:
    print(len(stdin.read_stdin(Signals(), 2 * 1024 * 1024)))
except InvalidValues as error:
    print(error.message)
"""


@pytest.mark.parametrize(
    ("content", "output"),
    [
        (b"x" * 2 * 1024 * 1024, "2097152"),
        (b"x" * (2 * 1024 * 1024 + 1), "stdin is larger than 2 MiB."),
        (b"\xff", "stdin is not UTF-8 text."),
        ("\u00e9".encode(), "1"),
    ],
    ids=["as large as the limit", "one byte larger", "not UTF-8", "UTF-8"],
)
def test_a_text_that_is_too_large_or_not_utf_8_is_refused(content: bytes, output: str) -> None:
    completed = run_python("-c", _READ_AT_MOST_2_MIB, stdin=content)

    assert completed.stdout == f"{output}\n"


# A stdin that cannot be read


@pytest.mark.parametrize("target", ["file", "pipe"])
def test_a_stdin_that_is_open_only_for_writing_is_refused(
    tool: Tool,
    workspace: Path,
    target: str,
) -> None:
    """Naive: a file gives "bad file descriptor", and the wait for a pipe does not end."""
    if target == "file":
        read_end = None
        write_end = os.open(workspace / "out", os.O_WRONLY | os.O_CREAT)
    else:
        read_end, write_end = os.pipe()
    process = tool.start("config", "set", "k", "-", "--timeout", "20s", stdin=write_end)
    os.close(write_end)

    ran = _end_with_open_stdin(process)

    if read_end is not None:
        os.close(read_end)
    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert ran.error["message"] == "Cannot read stdin: it is open only for writing."
