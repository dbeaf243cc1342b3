"""Standard input is read to its end or not at all."""

import signal
import time
from pathlib import Path

from sampletool.kit.testing.tool import Ran, Tool


def test_an_interrupted_producer_s_half_is_not_taken_for_the_whole(tool: Tool, workspace: Path) -> None:
    process = tool.start("config", "set", "k", "-")
    assert process.stdin is not None
    process.stdin.write(b"first half of a long")
    process.stdin.flush()
    time.sleep(0.7)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == -signal.SIGINT
    assert time.monotonic() - began < 3
    stdout, stderr = process.communicate()

    assert Ran(process.returncode, stdout, stderr).code == "INTERRUPTED"
    assert "half" not in (workspace / "tool.toml").read_text()
    assert tool("config", "get", "k").status == 5


def test_the_time_for_the_call_ends_the_wait_for_stdin(tool: Tool, workspace: Path) -> None:
    process = tool.start("config", "set", "k", "-", "--timeout", "300ms")

    assert process.wait(10) == 10
    process.communicate()
    assert "k" not in (workspace / "tool.toml").read_text().split()
