"""Signals are recorded, and acted on only where it is safe."""

import math
import os
import random
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from sampletool.kit.safety import signals as module
from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.signals import HANDLED, Signals
from sampletool.kit.testing.failing import failure_of, outcome_of
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.probe import start_probe
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Ran, Tool, ended

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


def test_a_raising_handler_between_acquiring_and_the_block_leaks_and_a_recording_one_does_not() -> (
    None
):
    """The signal is arranged to arrive when the lock has been taken, but `try` has not been
    entered.
    """
    raising = "def stop(*_): raise Stop\nsignal.signal(signal.SIGTERM, stop)"
    recording = (
        "from sampletool.kit.safety.signals import Signals\n"
        "from sampletool.kit.safety.errors import Interrupted\n"
        "signals = Signals()\nsignals.install()\nStop = Interrupted"
    )
    instant = "signal.raise_signal(signal.SIGTERM)"

    naive = _run(_LEAK.format(handler=raising, instant=instant, body="pass"))
    ours = _run(_LEAK.format(handler=recording, instant=instant, body="signals.check()"))

    assert naive == "held"
    assert ours == "free"


def _run(code: str) -> str:
    return run_python("-c", code).stdout.strip()


def test_at_every_step_of_config_set_a_signal_ends_it_whole_or_not_at_all(
    tool: Tool, workspace: Path
) -> None:
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
            if stepped.next_event is None:
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
    """A process that has not changed the file yet must obey.

    So it is stopped first, to look at the file.
    """
    tool.environ.pop(
        "COVERAGE_PROCESS_START", None
    )  # coverage swallows what is raised while it starts
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
        if (
            b"KeyboardInterrupt" in ran.stderr
        ):  # Python itself was still starting: the first line of ours is in the kit
            assert b"sampletool/kit/" not in ran.stderr
            continue

        assert ran.status == -number or (is_changed and ran.status == 0), (turn, ran)
        assert b"Traceback" not in ran.stderr
        assert file.read_text() in (old, old + "a = 1\n")
        if ran.status == 0:
            assert ran.data["effect"] == "created"
        elif ran.stdout:
            assert (ran.code, ran.error["context"]["signal"]) == (
                "INTERRUPTED",
                signal.Signals(number).name,
            )
        assert tool("config", "set", "b", "2", "--lock-timeout", "0").status == 0


def test_a_signal_while_waiting_for_a_lock_is_answered_at_once_and_dies_by_it(
    tool: Tool, workspace: Path
) -> None:
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
        "import os, signal, sys\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "command = ['-m', 'sampletool', 'config', 'set', 'k', '-']\n"
        "os.execv(sys.executable, [sys.executable, *command])"
    )
    # A fresh interpreter: it is started with these signals ignored.
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=workspace,
        env=tool.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    while not _catches(process.pid, signal.SIGTERM):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    process.communicate(b"value", timeout=40)

    assert process.returncode == 0


def _catches(pid: int, number: int) -> bool:
    """Return whether the handler is installed. Before that, an ignored signal shows nothing."""
    (caught,) = re.findall(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
    return bool(int(caught, 16) & 1 << (number - 1))


def test_a_signal_after_the_answer_does_not_change_what_it_says(tool: Tool) -> None:
    body = """
end = os._exit
os._exit = lambda status: (os.kill(os.getpid(), signal.SIGTERM), end(status))
return Result("done")
"""
    process = start_probe(tool, body)
    ran = ended(process)

    assert (ran.status, ran.data) == (0, {"said": "done"})


# The record


@pytest.fixture
def installed() -> Iterator[Signals]:
    """Signals that this process receives, by a clock that stands still."""
    signals = Signals(clock=lambda: 0.0)
    signals.install()
    yield signals
    signals.uninstall()


def error_of_check(signals: Signals) -> Exception | None:
    """Return the error that `check` raises, or None."""
    try:
        signals.check()
    except Exception as error:
        return error
    return None


def count_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM])
def test_each_signal_that_asks_a_process_to_stop_gets_the_handler(number: int) -> None:
    """No signal is sent here: without the handler, it would kill the process of the tests."""
    signals = Signals()
    previous_handler = signal.signal(number, signal.SIG_DFL)

    error = failure_of(signals.install)
    handler = signal.getsignal(number)
    signals.uninstall()
    signal.signal(number, previous_handler)

    assert error is None
    assert handler == signals._record


def test_before_anything_arrives_the_record_is_empty() -> None:
    signals = Signals()

    record = outcome_of(lambda: (signals.received, signals.is_repeated, signals.timeout_seconds))

    assert record == (None, False, 0.0)


def test_without_a_deadline_no_time_is_left_or_over() -> None:
    signals = Signals()

    seconds_left = outcome_of(lambda: signals.seconds_left)
    is_over = outcome_of(signals.is_over)

    assert seconds_left is None
    assert is_over is False


def test_a_process_that_was_not_told_to_stop_continues() -> None:
    signals = Signals()

    assert error_of_check(signals) is None
    assert signals.received is None
    assert not signals.is_over()
    assert not signals.is_repeated
    assert signals.seconds_left is None
    assert signals.timeout_seconds == 0.0


def test_a_recorded_signal_is_raised_where_the_code_checks_for_it() -> None:
    signals = Signals()

    signals.receive(signal.SIGINT)
    error = error_of_check(signals)

    assert signals.is_over()
    assert isinstance(error, Interrupted)
    assert error.signal_number == signal.SIGINT


def test_the_echo_of_a_signal_is_no_second_request_and_a_later_signal_is() -> None:
    now = [100.0]
    signals = Signals(clock=lambda: now[0])

    signals.receive(signal.SIGTERM)
    now[0] = 100.4
    signals.receive(signal.SIGHUP)
    is_repeated_early = signals.is_repeated
    now[0] = 100.6
    signals.receive(signal.SIGHUP)

    assert signals.received == signal.SIGTERM
    assert not is_repeated_early
    assert signals.is_repeated


def test_a_signal_while_another_one_is_being_recorded_is_its_echo() -> None:
    """The handler can be interrupted by itself. Here, each assignment is such a moment."""

    class Interrupting(Signals):
        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if name in ("received", "_received_at") and value not in (None, 0.0) and not nested:
                nested.append(name)
                self.receive(signal.SIGHUP)

    nested: list[str] = []
    signals = Interrupting(clock=lambda: 100.0)

    signals.receive(signal.SIGTERM)

    assert nested
    assert signals.received == signal.SIGTERM
    assert not signals.is_repeated


def test_handlers_are_given_back_and_so_is_the_wake_up_descriptor() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    handlers = {number: signal.getsignal(number) for number in HANDLED}
    previous = signal.set_wakeup_fd(write_end)
    descriptors = count_descriptors()
    signals = Signals()

    signals.install()
    signals.uninstall()

    assert {number: signal.getsignal(number) for number in HANDLED} == handlers
    assert signal.set_wakeup_fd(previous) == write_end
    assert count_descriptors() == descriptors
    os.close(read_end)
    os.close(write_end)


def test_python_never_knows_a_wake_up_descriptor_that_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise a signal could write a byte into a file that has got the same descriptor since."""
    are_open: list[bool] = []

    def set_wakeup_fd(descriptor: int, **options: bool) -> int:
        previous = really_set(descriptor, **options)
        if previous != -1:
            are_open.append(os.path.exists(f"/proc/self/fd/{previous}"))
        return previous

    really_set = signal.set_wakeup_fd
    monkeypatch.setattr(signal, "set_wakeup_fd", set_wakeup_fd)
    signals = Signals()

    signals.install()
    signals.uninstall()

    assert are_open == [True]


def test_without_a_wake_up_descriptor_before_there_is_none_afterwards() -> None:
    signals = Signals()

    signals.install()
    signals.uninstall()

    assert signal.set_wakeup_fd(-1) == -1


def test_ending_what_never_began_does_nothing() -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    previous = signal.set_wakeup_fd(write_end)
    signals = Signals()

    signals.close()
    signals.uninstall()
    signals.uninstall()

    assert signal.set_wakeup_fd(previous) == write_end
    os.close(read_end)
    os.close(write_end)


# The deadline


def test_the_deadline_is_kept_by_the_clock_that_was_given() -> None:
    now = [0.0]
    signals = Signals(clock=lambda: now[0])
    signals.limit(5)

    error_before = error_of_check(signals)
    now[0] = 5.0
    error = error_of_check(signals)

    assert error_before is None
    assert signals.is_over()
    assert isinstance(error, DeadlineExceeded)
    assert error.seconds == signals.timeout_seconds == 5


def test_the_time_that_is_left_never_gets_negative() -> None:
    now = [100.0]
    signals = Signals(clock=lambda: now[0])
    signals.limit(5)

    left = []
    for moment in (100.0, 104.0, 105.0, 200.0):
        now[0] = moment
        left.append(signals.seconds_left)

    assert left == [5.0, 1.0, 0.0, 0.0]


def test_a_signal_counts_before_the_deadline() -> None:
    """The process has to die by the signal, also if the time is over as well."""
    signals = Signals()
    signals.limit(0)
    signals.receive(signal.SIGTERM)

    assert isinstance(error_of_check(signals), Interrupted)


# Waiting


def test_a_signal_that_arrives_during_a_wait_ends_it() -> None:
    signals = Signals()
    signals.install()
    sender = threading.Timer(0.1, os.kill, [os.getpid(), signal.SIGHUP])
    try:
        began = time.monotonic()
        sender.start()
        readable = signals.wait(10)
    finally:
        sender.join()
        signals.uninstall()

    assert time.monotonic() - began < 10
    assert signals.received == signal.SIGHUP
    assert readable == []


def test_after_a_signal_no_wait_sleeps(installed: Signals) -> None:
    signal.raise_signal(signal.SIGTERM)

    began = time.monotonic()
    installed.wait(5)
    installed.wait(5)

    assert time.monotonic() - began < 5


def test_a_thread_that_gets_no_signals_can_be_sent_one() -> None:
    descriptors = count_descriptors()
    signals = Signals()
    signals.listen()
    sender = threading.Timer(0.1, signals.receive, [signal.SIGTERM])

    began = time.monotonic()
    sender.start()
    signals.wait(10)
    took = time.monotonic() - began
    woken = select.select([signals.wake_up_descriptor], [], [], 0)[0]
    sender.join()
    signals.close()

    assert took < 10
    assert woken
    assert signals.received == signal.SIGTERM
    assert count_descriptors() == descriptors


def test_before_a_signal_the_wake_up_descriptor_is_not_readable() -> None:
    signals = Signals()
    signals.listen()

    woken = select.select([signals.wake_up_descriptor], [], [], 0)[0]
    signals.close()

    assert not woken


def test_a_signal_is_received_even_if_the_wake_up_pipe_is_full() -> None:
    signals = Signals()
    signals.listen()

    error = None
    try:
        for _ in range(70_000):  # a pipe of Linux holds 65,536 bytes
            signals.receive(signal.SIGTERM)
    except BlockingIOError as full:
        error = full
    ends_at_once = select.select([signals.wake_up_descriptor], [], [], 0)[0]
    signals.close()

    assert error is None
    assert ends_at_once


def test_python_does_not_complain_about_a_full_wake_up_pipe(
    installed: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would write a traceback to stderr for each further signal."""
    complaints: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", complaints.append)
    for _ in range(70_000):  # a pipe of Linux holds 65,536 bytes
        installed.receive(signal.SIGTERM)

    signal.raise_signal(signal.SIGTERM)

    assert complaints == []


def test_the_deadline_ends_a_wait() -> None:
    signals = Signals()
    signals.limit(0.1)

    began = time.monotonic()
    signals.wait(10)

    assert time.monotonic() - began < 10
    assert signals.is_over()


def test_a_wait_returns_the_descriptors_that_are_readable(installed: Signals) -> None:
    silent_read_end, silent_write_end = os.pipe()
    read_end, write_end = os.pipe()
    os.write(write_end, b"x")

    readable = installed.wait(5, [silent_read_end, read_end])
    nothing = installed.wait(0, [silent_read_end])
    os.close(silent_write_end)
    closed = installed.wait(5, [silent_read_end])
    for descriptor in (silent_read_end, read_end, write_end):
        os.close(descriptor)

    assert readable == [read_end]
    assert nothing == []
    assert closed == [silent_read_end]


class RecordingPoll:
    """Remembers for how long it was to wait. It reports these events, one for each call."""

    def __init__(self, *events: list[tuple[int, int]]) -> None:
        self.milliseconds: list[float] = []
        self._events = list(events)

    def register(self, _descriptor: int, _events: int) -> None:
        """Accept everything."""

    def poll(self, milliseconds: float) -> list[tuple[int, int]]:
        self.milliseconds.append(milliseconds)
        return self._events.pop(0) if self._events else []


@pytest.mark.parametrize(
    ("limit_seconds", "seconds", "sleep_seconds"),
    [(None, 20, 20), (5, 20, 5), (20, 5, 5), (0, 5, 0)],
)
def test_a_wait_lasts_as_long_as_was_asked_or_until_the_deadline(
    limit_seconds: float | None,
    seconds: float,
    sleep_seconds: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    poll = RecordingPoll()
    monkeypatch.setattr(module, "poll", lambda: poll)
    signals = Signals(clock=lambda: 100.0)
    if limit_seconds is not None:
        signals.limit(limit_seconds)

    error = failure_of(lambda: signals.wait(seconds))

    assert error is None
    assert poll.milliseconds == [1000 * sleep_seconds]


@pytest.mark.parametrize("seconds", [25 * 86_400, math.inf])
def test_a_wait_that_is_longer_than_poll_allows_sleeps_until_something_happens(
    installed: Signals, seconds: float
) -> None:
    ready_read_end, ready_write_end = os.pipe()
    os.write(ready_write_end, b"x")

    readable = outcome_of(lambda: installed.wait(seconds, [ready_read_end]))

    os.close(ready_read_end)
    os.close(ready_write_end)
    assert readable == [ready_read_end]


def test_no_wait_sleeps_longer_than_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    poll = RecordingPoll()
    monkeypatch.setattr(module, "poll", lambda: poll)

    error = failure_of(lambda: Signals().wait(math.inf))

    assert error is None
    assert poll.milliseconds == [86_400_000]


# Writing


def test_content_that_is_larger_than_a_pipe_is_written_whole() -> None:
    content = random.Random(7).randbytes(300_000)
    read_end, write_end = os.pipe()
    pieces = []

    def read_all() -> None:
        while piece := os.read(read_end, 5000):
            pieces.append(piece)

    reader = threading.Thread(target=read_all)
    reader.start()
    is_written = Signals().write(write_end, content)
    os.close(write_end)
    reader.join()
    os.close(read_end)

    assert is_written
    assert b"".join(pieces) == content


def test_a_reader_that_has_hung_is_given_up_once_the_process_has_to_stop() -> None:
    read_end, write_end = os.pipe()
    signals = Signals()
    signals.receive(signal.SIGTERM)

    is_written = signals.write(write_end, bytes(300_000))
    os.close(read_end)
    os.close(write_end)

    assert not is_written


def test_a_reader_is_given_up_after_two_polls_of_a_quarter_of_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal may have arrived at the end of the first poll.

    The second one is a whole period.
    """
    poll = RecordingPoll()
    monkeypatch.setattr(module, "poll", lambda: poll)
    signals = Signals()
    signals.receive(signal.SIGTERM)

    is_written = signals.write(1, b"content")

    assert not is_written
    assert poll.milliseconds == [250, 250]


def test_a_reader_that_is_ready_gets_everything_although_the_process_has_to_stop() -> None:
    read_end, write_end = os.pipe()
    signals = Signals()
    signals.receive(signal.SIGTERM)

    is_written = signals.write(write_end, b"content")
    os.close(write_end)
    content = os.read(read_end, 100)
    os.close(read_end)

    assert is_written
    assert content == b"content"


def test_a_slow_reader_is_waited_for_while_the_process_does_not_have_to_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytes(2 * select.PIPE_BUF)
    with (tmp_path / "out").open("wb", buffering=0) as out:
        ready = [(out.fileno(), select.POLLOUT)]
        monkeypatch.setattr(module, "poll", lambda: RecordingPoll(ready, [], ready))

        is_written = Signals().write(out.fileno(), content)

    assert is_written
    assert (tmp_path / "out").read_bytes() == content


def test_a_reader_that_has_gone_is_an_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    signals = Signals()
    # Then the write gives up in any case, and this test does not hang.
    signals.receive(signal.SIGTERM)

    error = failure_of(lambda: signals.write(write_end, b"content"))
    os.close(write_end)

    assert isinstance(error, BrokenPipeError)


def test_no_more_is_written_at_a_time_than_a_pipe_takes_without_blocking() -> None:
    read_end, write_end = os.pipe()

    written_bytes = module._write_some(write_end, memoryview(bytes(10_000)))
    os.close(read_end)
    os.close(write_end)

    assert written_bytes == select.PIPE_BUF


def test_a_pipe_that_another_writer_has_filled_takes_nothing() -> None:
    """poll() has reported that there is room. Before we could write, somebody else did."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(write_end, bytes(4096))

    written_bytes = module._write_some(write_end, memoryview(b"content"))
    os.close(read_end)
    os.close(write_end)

    assert written_bytes == 0


# Dying


_DIE_BY_A_BLOCKED_SIGNAL = """
import signal
from sampletool.kit.safety.signals import die_by
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
die_by(signal.SIGTERM)
"""


_DIE_BY_AN_IGNORED_SIGNAL = """
import signal
from sampletool.kit.safety.signals import die_by
signal.signal(signal.SIGTERM, signal.SIG_IGN)
die_by(signal.SIGTERM)
"""


def test_a_process_dies_by_its_signal_even_if_it_has_ignored_it_until_then() -> None:
    ran = run_python("-c", _DIE_BY_AN_IGNORED_SIGNAL, check=False)

    assert ran.returncode == -signal.SIGTERM


def test_a_process_that_cannot_die_by_its_signal_exits_with_the_code_that_means_it() -> None:
    ran = run_python("-c", _DIE_BY_A_BLOCKED_SIGNAL, check=False)

    assert ran.returncode == 128 + signal.SIGTERM
