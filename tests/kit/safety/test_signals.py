"""Signals are recorded, and acted on only where it is safe."""

import os
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.signals import HANDLED, Signals
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Ran, Tool, ended
from tests.kit.added_command import start_added

_LEAK = """
import signal
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
        "from sampletool.kit.safety.signals import Signals\nfrom sampletool.kit.safety.errors import Interrupted\n"
        "signals = Signals()\nsignals.install()\nStop = Interrupted"
    )
    instant = "signal.raise_signal(signal.SIGTERM)"

    naive = _run(_LEAK.format(handler=raising, instant=instant, body="pass"))
    ours = _run(_LEAK.format(handler=recording, instant=instant, body="signals.check()"))

    assert naive == "held"
    assert ours == "free"


def _run(code: str) -> str:
    return run_python("-c", code).stdout.strip()


def test_at_every_step_of_config_set_a_signal_ends_it_whole_or_not_at_all(tool: Tool, workspace: Path) -> None:
    file = workspace / "tool.toml"
    old = file.read_text()
    tool("config", "set", "warm", "1")
    steps = 0
    while True:
        number = HANDLED[steps % len(HANDLED)]
        file.write_text(old)
        with tool.stepped("config", "set", "a", "1", watch=workspace) as stepped:
            for _ in range(steps):
                stepped.step()
            if stepped.at is None:
                break
            stepped.signal(number)
            over = stepped.finish()

        ran = Ran(over.status, over.stdout, over.stderr)
        assert (ran.status, ran.code) == (-number, "INTERRUPTED"), steps
        assert ran.error["context"]["signal"] == signal.Signals(number).name
        assert file.read_text() in (old, old + "a = 1\n")
        steps += 1

    assert steps > 5
    assert tool("config", "set", "b", "2", "--lock-timeout", "0").status == 0


@pytest.mark.parametrize("number", HANDLED, ids=lambda number: signal.Signals(number).name)
def test_at_random_instants_of_config_set_a_signal_is_obeyed(
    tool: Tool, workspace: Path, number: signal.Signals
) -> None:
    """It is stopped to see how far it is: only what has changed the file may be over before the signal is seen."""
    tool.environ.pop("COVERAGE_PROCESS_START", None)  # coverage swallows what is raised while it starts
    tool.environ.pop("COVERAGE_PROCESS_CONFIG", None)
    file = workspace / "tool.toml"
    old = file.read_text()
    for turn in range(scale(5, 200)):
        file.write_text(old)
        # A fresh interpreter: some of the instants are before the kit is imported.
        process = tool.start_fresh("config", "set", "a", "1")
        time.sleep(random.uniform(0, 0.12))
        os.kill(process.pid, signal.SIGSTOP)  # Popen would reap it, if it has ended
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        is_changed = file.read_text() == old + "a = 1\n"
        process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        ran = ended(process)
        if b"KeyboardInterrupt" in ran.stderr:  # Python itself was still starting: the first line of ours is in the kit
            assert b"sampletool/kit/" not in ran.stderr
            continue

        assert ran.status == -number or (is_changed and ran.status == 0), (turn, ran)
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
        ran = ended(process)

    assert (ran.status, ran.code) == (-signal.SIGTERM, "INTERRUPTED")
    assert other.pid


def test_what_nohup_ignores_stays_ignored(tool: Tool, workspace: Path) -> None:
    code = (
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); signal.signal(signal.SIGINT, "
        "signal.SIG_IGN); os.execv(sys.executable, [sys.executable, '-m', 'sampletool', 'config', 'set', 'k', '-'])"
    )
    # A fresh interpreter: it is started with these signals ignored.
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=workspace, env=tool.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    while not _catches(process.pid, signal.SIGTERM):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    process.communicate(b"value", timeout=40)

    assert process.returncode == 0


def _catches(pid: int, number: int) -> bool:
    """Whether the handler is installed; before that an ignored signal is ignored by nobody's merit."""
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(caught, 16) & 1 << (number - 1))


def test_a_signal_after_the_answer_does_not_change_what_it_says(tool: Tool) -> None:
    body = """
end = os._exit
os._exit = lambda status: (os.kill(os.getpid(), signal.SIGTERM), end(status))
return Result("done")
"""
    process = start_added(tool, body)
    ran = ended(process)

    assert (ran.status, ran.data) == (0, {"said": "done"})


def test_a_recorded_signal_is_raised_where_it_is_asked_for() -> None:
    signals = Signals()
    signals.check()
    signals.received = signal.SIGINT

    with pytest.raises(Interrupted) as caught:
        signals.check()

    assert caught.value.signal_number == signal.SIGINT


def test_the_time_for_the_whole_call_ends_by_the_clock_it_was_given() -> None:
    now = [0.0]
    signals = Signals(clock=lambda: now[0])
    signals.limit(5)
    signals.check()
    now[0] = 5.0

    assert signals.is_over()
    with pytest.raises(DeadlineExceeded):
        signals.check()


def test_handlers_are_given_back_and_so_is_the_wake_up_descriptor() -> None:
    read, write = os.pipe()
    os.set_blocking(write, False)
    before = {number: signal.getsignal(number) for number in HANDLED}
    previous = signal.set_wakeup_fd(write)
    opened = len(os.listdir("/proc/self/fd"))
    signals = Signals()

    signals.install()
    signals.uninstall()

    assert {number: signal.getsignal(number) for number in HANDLED} == before
    assert signal.set_wakeup_fd(previous) == write
    assert len(os.listdir("/proc/self/fd")) == opened
    os.close(read)
    os.close(write)


def test_a_signal_that_comes_during_a_wait_ends_it() -> None:
    signals = Signals()
    signals.install()
    sender = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGHUP])
    try:
        began = time.monotonic()
        sender.start()
        signals.wait(20)
    finally:
        sender.join()
        signals.uninstall()

    assert time.monotonic() - began < 20
    assert signals.received == signal.SIGHUP


def test_a_thread_that_gets_no_signals_can_be_sent_one() -> None:
    opened = len(os.listdir("/proc/self/fd"))
    signals = Signals()
    signals.listen()
    sender = threading.Timer(0.1, signals.receive, [signal.SIGTERM])
    began = time.monotonic()
    sender.start()
    signals.wait(20)
    ready = select.select([signals.woken], [], [], 0)[0]
    sender.join()
    signals.close()

    assert time.monotonic() - began < 20
    assert ready
    assert signals.received == signal.SIGTERM
    assert len(os.listdir("/proc/self/fd")) == opened


def test_the_end_of_the_call_s_time_ends_a_wait() -> None:
    signals = Signals()
    signals.limit(0.1)
    began = time.monotonic()

    signals.wait(20)

    assert time.monotonic() - began < 20
    assert signals.is_over()


def test_the_echo_of_a_signal_is_no_second_wish_and_a_later_one_is() -> None:
    now = [0.0]
    signals = Signals(clock=lambda: now[0])
    signals.install()
    try:
        for at, number in ((0.0, signal.SIGTERM), (0.4, signal.SIGHUP)):
            now[0] = at
            signal.raise_signal(number)
        early = signals.is_repeated
        now[0] = 0.6
        signal.raise_signal(signal.SIGHUP)
    finally:
        signals.uninstall()

    assert (signals.received, early, signals.is_repeated) == (signal.SIGTERM, False, True)
