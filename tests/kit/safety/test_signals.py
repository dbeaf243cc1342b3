"""Signals are recorded, and acted on only where it is safe."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import Interrupted, TimedOut
from sampletool.kit.safety.signals import HANDLED, Signals
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Ran, Tool

_LEAK = """
import signal, sys
sys.path.insert(0, sys.argv[1])
from contextlib import contextmanager

class Stop(BaseException): pass
held = []
{handler}

@contextmanager
def lock():
    held.append(1)
    {instant}
    try:
        yield
    finally:
        held.clear()

try:
    with lock():
        {body}
except Stop:
    pass
print("held" if held else "free")
"""


def test_a_raising_handler_between_acquiring_and_the_block_leaks_and_a_recording_one_does_not() -> None:
    """The instant is arranged: the signal arrives when the lock is taken and the `try` has not begun."""
    raising = "def stop(*_): raise Stop\nsignal.signal(signal.SIGTERM, stop)"
    recording = (
        "from sampletool.kit.safety.signals import Signals\nfrom sampletool.kit.contract.errors import Interrupted\n"
        "signals = Signals()\nsignals.install()\nStop = Interrupted"
    )
    instant = "signal.raise_signal(signal.SIGTERM)"

    naive = _run(_LEAK.format(handler=raising, instant=instant, body="pass"))
    ours = _run(_LEAK.format(handler=recording, instant=instant, body="signals.check()"))

    assert naive == "held"
    assert ours == "free"


def _run(code: str) -> str:
    root = str(Path(__file__).parents[3])
    return subprocess.run([sys.executable, "-c", code, root], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("number", HANDLED, ids=lambda number: signal.Signals(number).name)
def test_at_random_instants_of_config_set_a_signal_ends_it_whole_or_not_at_all(
    tool: Tool, workspace: Path, number: signal.Signals
) -> None:
    file = workspace / "tool.toml"
    old = file.read_text()
    for turn in range(scale(10, 200)):
        file.write_text(old)
        process = tool.start("config", "set", "a", "1")
        time.sleep(random.uniform(0, 0.12))
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=30)
        ran = Ran(process.returncode, stdout, stderr)
        if b"KeyboardInterrupt" in ran.stderr:  # Python itself was still starting: nothing of ours had run
            assert b"sampletool/" not in ran.stderr
            assert ran.stdout == b""
            continue

        assert ran.status in (0, -number), (turn, ran)
        assert b"Traceback" not in ran.stderr
        assert file.read_text() in (old, old + "a = 1\n")
        if ran.status == 0:
            assert ran.data["effect"] == "created"
        elif ran.stdout:
            assert (ran.code, ran.error["context"]["signal"]) == ("INTERRUPTED", signal.Signals(number).name)
        assert tool("config", "set", "b", "2", "--lock-timeout", "0").status == 0


def test_a_signal_while_waiting_for_a_lock_is_answered_at_once_and_dies_by_it(tool: Tool, workspace: Path) -> None:
    from sampletool.kit.testing.holding import holding

    tool("config", "set", "warm", "1")
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock") as other:
        process = tool.start("config", "set", "a", "1", "--verbose")
        assert process.stderr is not None
        while b"waiting for" not in process.stderr.readline():
            pass
        process.terminate()
        stdout, _ = process.communicate(timeout=10)

    assert process.returncode == -signal.SIGTERM
    assert Ran(process.returncode, stdout, b"").code == "INTERRUPTED"
    assert other.pid


def test_what_nohup_ignores_stays_ignored(tool: Tool, workspace: Path) -> None:
    code = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); signal.signal(signal.SIGINT, "
        "signal.SIG_IGN); os.execv(sys.executable, [sys.executable, '-m', 'sampletool', 'config', 'set', 'k', '-'])"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=workspace, env=tool.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    time.sleep(0.5)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    process.communicate(b"value", timeout=10)

    assert process.returncode == 0


def test_a_recorded_signal_is_raised_where_it_is_asked_for() -> None:
    signals = Signals()
    signals.check()
    signals.received = signal.SIGINT

    with pytest.raises(Interrupted) as caught:
        signals.check()

    assert caught.value.exit_status == 130


def test_the_time_for_the_whole_call_ends_by_the_clock_it_was_given() -> None:
    now = [0.0]
    signals = Signals(clock=lambda: now[0])
    signals.limit(5)
    signals.check()
    now[0] = 5.0

    assert signals.is_over()
    with pytest.raises(TimedOut):
        signals.check()


def test_handlers_are_given_back() -> None:
    before = {number: signal.getsignal(number) for number in HANDLED}
    signals = Signals()

    signals.install()
    signals.uninstall()

    assert {number: signal.getsignal(number) for number in HANDLED} == before


def test_a_wait_ends_when_a_signal_comes() -> None:
    signals = Signals()
    signals.install()
    try:
        os.kill(os.getpid(), signal.SIGHUP)
        began = time.monotonic()
        signals.wait(30)
    finally:
        signals.uninstall()

    assert time.monotonic() - began < 10
    assert signals.received == signal.SIGHUP
