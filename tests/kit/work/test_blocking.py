"""sampletool/kit/work/blocking.py: a signal or the deadline ends the wait for a function."""

import gc
import os
import signal
import socket
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import ExitStatus
from sampletool.kit.program import env_variable
from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.lockless_thread import LocklessThread
from sampletool.kit.safety.signals import Signals
from sampletool.kit.stepping.forked_process import ForkedProcess
from sampletool.kit.testing.probe import start_probe
from sampletool.kit.testing.tool import Tool, ended
from sampletool.kit.work.blocking import run_blocking

_BLOCKING_SECONDS = 10.0
"""How long a function blocks if nothing ends it. The test then fails, because nothing is raised."""

_LONGEST_SECONDS = 60.0
"""The timeout for something that should happen at once. It is long enough for a busy machine."""


@pytest.fixture
def installed_signals() -> Iterator[Signals]:
    """Return signals that this process receives."""
    signals = Signals()
    signals.install()
    yield signals
    signals.uninstall()


@pytest.fixture
def released() -> Iterator[threading.Event]:
    """Return an event that a function can wait for. It is set when the test is over."""
    event = threading.Event()
    yield event
    event.set()
    _join_blocking_threads()


def _join_blocking_threads() -> None:
    for thread in threading.enumerate():
        if isinstance(thread, LocklessThread):
            thread.join(_LONGEST_SECONDS)


def test_the_result_of_the_function_is_returned(signals: Signals) -> None:
    result = run_blocking(divmod, (7, 2), signals)

    assert result == (3, 1)


def test_the_error_of_the_function_is_raised_with_its_traceback(signals: Signals) -> None:
    error = ConnectionResetError("the server has closed the connection")

    def fetch() -> None:
        raise error

    with pytest.raises(ConnectionResetError) as caught:
        run_blocking(fetch, (), signals)

    assert caught.value is error
    functions = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert functions[-1] == "fetch"
    assert "run_blocking" in functions


def test_an_exit_is_raised_in_the_caller_as_well(signals: Signals) -> None:
    with pytest.raises(SystemExit):
        run_blocking(sys.exit, (3,), signals)


def test_a_signal_ends_the_wait(installed_signals: Signals, released: threading.Event) -> None:
    def interrupt_and_block() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        released.wait(_BLOCKING_SECONDS)

    with pytest.raises(Interrupted) as caught:
        run_blocking(interrupt_and_block, (), installed_signals)

    assert caught.value.signal_number == signal.SIGINT
    assert caught.value.uncertain_change is None


def test_a_server_can_end_the_wait_in_one_of_its_threads(released: threading.Event) -> None:
    """A command of `tool mcp` runs in a thread, which gets no signals. The server sends it one."""
    signals = Signals()
    signals.listen()

    def stop_and_block() -> None:
        signals.receive(signal.SIGTERM)
        released.wait(_BLOCKING_SECONDS)

    with pytest.raises(Interrupted):
        run_blocking(stop_and_block, (), signals)

    # The abandoned thread still runs, and does not need the pipe of the signals.
    signals.close()


def test_the_deadline_ends_the_wait(signals: Signals, released: threading.Event) -> None:
    signals.limit(0.05)

    with pytest.raises(DeadlineExceeded):
        run_blocking(released.wait, (_BLOCKING_SECONDS,), signals)


def test_whether_an_abandoned_function_made_its_change_is_uncertain(
    signals: Signals, released: threading.Event
) -> None:
    signals.limit(0.05)

    with pytest.raises(DeadlineExceeded) as caught:
        run_blocking(released.wait, (_BLOCKING_SECONDS,), signals, changes="the order")

    assert caught.value.uncertain_change == "the order"


def test_a_function_that_was_not_called_has_made_no_change(signals: Signals) -> None:
    signals.receive(signal.SIGTERM)

    with pytest.raises(Interrupted) as caught:
        run_blocking(divmod, (7, 2), signals, changes="the order")

    assert caught.value.uncertain_change is None


def test_after_a_signal_the_function_is_not_called(signals: Signals) -> None:
    calls: list[str] = []
    signals.receive(signal.SIGTERM)

    with pytest.raises(Interrupted):
        run_blocking(calls.append, ("called",), signals)

    assert calls == []


def test_a_function_that_ends_together_with_the_signal_has_a_result() -> None:
    """The caller learns what has happened, for example that its order was placed."""
    is_waiting = threading.Event()

    class SignalsNoticedLate(Signals):
        """Signals that do not wake up the caller. It notices the end of the function first."""

        def wait(self, seconds: float, descriptors: Sequence[int] = ()) -> list[int]:
            is_waiting.set()
            return super().wait(_LONGEST_SECONDS, descriptors)

    signals = SignalsNoticedLate()

    def place_order() -> str:
        is_waiting.wait(_LONGEST_SECONDS)
        signals.receive(signal.SIGTERM)
        return "placed"

    try:
        result = run_blocking(place_order, (), signals)
    except Interrupted:
        result = "lost"

    assert result == "placed"
    assert signals.is_over()


def test_later_calls_have_their_own_results(signals: Signals, released: threading.Event) -> None:
    impatient = Signals()
    impatient.limit(0.05)
    with pytest.raises(DeadlineExceeded):
        run_blocking(released.wait, (_BLOCKING_SECONDS,), impatient)

    first = run_blocking(divmod, (7, 2), signals)
    released.set()
    second = run_blocking(divmod, (9, 2), signals)

    assert (first, second) == ((3, 1), (4, 1))


def test_an_abandoned_thread_closes_its_own_descriptor_and_no_other(
    signals: Signals, released: threading.Event
) -> None:
    before = set(os.listdir("/proc/self/fd"))
    signals.limit(0.05)
    with pytest.raises(DeadlineExceeded):
        run_blocking(released.wait, (_BLOCKING_SECONDS,), signals)
    # These get the lowest free numbers, so they would get that of a descriptor closed too early.
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(10)]

    released.set()
    _join_blocking_threads()

    for descriptor in opened:
        os.close(descriptor)
    assert set(os.listdir("/proc/self/fd")) == before


def test_the_late_error_of_an_abandoned_function_is_discarded(
    signals: Signals, released: threading.Event, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail_late() -> None:
        released.wait(_BLOCKING_SECONDS)
        raise ConnectionResetError

    signals.limit(0.05)
    with pytest.raises(DeadlineExceeded):
        run_blocking(fail_late, (), signals)

    released.set()
    _join_blocking_threads()

    assert capfd.readouterr() == ("", "")


def test_a_program_exits_although_an_abandoned_function_continues() -> None:
    program = """
import time
from sampletool.kit.safety.signals import Signals
from sampletool.kit.work.blocking import run_blocking

def sleep_and_print():
    time.sleep(10)
    print("the program has waited for the function")

signals = Signals()
signals.limit(0.05)
try:
    run_blocking(sleep_and_print, (), signals)
except Exception:
    print("abandoned")
"""

    # A fresh interpreter, because this is about how an interpreter exits.
    completed = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=_LONGEST_SECONDS,
        check=False,
    )

    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "abandoned\n", "")


def test_no_lock_can_be_taken_in_the_function(signals: Signals, tmp_path: Path) -> None:
    """If the function were abandoned, the lock would stay held until the process exits."""
    lock = Lock(tmp_path / "orders.lock", "orders")

    def place_order() -> None:
        with lock.exclusively():
            pass

    with pytest.raises(RuntimeError, match="'orders'"):
        run_blocking(place_order, (), signals)

    with lock.exclusively(timeout_seconds=0):
        pass


def test_if_no_thread_can_be_started_the_error_is_one_of_the_system(
    signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = set(os.listdir("/proc/self/fd"))

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(LocklessThread, "start", refuse)

    with pytest.raises(BlockingIOError, match="can't start new thread"):
        run_blocking(divmod, (7, 2), signals)

    assert set(os.listdir("/proc/self/fd")) == before


class _Socket:
    """Something that a library opens. It is closed when nothing refers to it any more."""


def test_what_a_failed_function_has_opened_is_closed_without_garbage_collection(
    signals: Signals,
) -> None:
    opened: list[weakref.ref[_Socket]] = []

    def fetch() -> None:
        socket = _Socket()
        opened.append(weakref.ref(socket))
        raise ConnectionResetError

    gc.disable()
    try:
        try:
            run_blocking(fetch, (), signals)
        except ConnectionResetError:
            pass
        still_open = [reference() for reference in opened]
    finally:
        gc.enable()

    assert still_open == [None]


# In a command, with a real server


_FETCH = """
from urllib.request import urlopen

def fetch(url):
    with urlopen(url) as response:
        return response.read()

with context.editing(context.workspace / "tool.toml"):
    context.blocking(fetch, {url!r}, changes={changes!r})
"""
"""The work of a command that holds a lock while it waits for a server."""


@pytest.fixture
def silent_server() -> Iterator[socket.socket]:
    """Return a socket that clients can connect to. Nothing responds to them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(_LONGEST_SECONDS)
        yield server


def _start_fetch(tool: Tool, server: socket.socket, changes: str | None = None) -> ForkedProcess:
    host, port = server.getsockname()
    url = f"http://{host}:{port}/"
    return start_probe(tool, _FETCH.format(url=url, changes=changes))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
@pytest.mark.usefixtures("workspace")
def test_a_signal_ends_the_wait_for_a_silent_server(
    tool: Tool, silent_server: socket.socket, number: signal.Signals
) -> None:
    process = _start_fetch(tool, silent_server)
    connection, _ = silent_server.accept()

    # The server stays silent until the command has ended.
    with connection:
        process.send_signal(number)
        ran = ended(process)

    assert (ran.status, ran.code) == (-number, "INTERRUPTED")
    assert "outcome" not in ran.error["context"]
    assert tool("config", "set", "key", "1", "--lock-timeout", "0").status == 0


@pytest.mark.usefixtures("workspace")
def test_the_timeout_ends_the_wait_for_a_server(tool: Tool, silent_server: socket.socket) -> None:
    tool.environ[env_variable("TIMEOUT")] = "1s"

    ran = ended(_start_fetch(tool, silent_server))

    assert (ran.status, ran.code) == (ExitStatus.TIMEOUT, "TIMEOUT")
    assert tool("config", "set", "key", "1", "--lock-timeout", "0").status == 0


@pytest.mark.usefixtures("workspace")
def test_a_command_that_may_have_changed_something_reports_an_unknown_outcome(
    tool: Tool, silent_server: socket.socket
) -> None:
    process = _start_fetch(tool, silent_server, changes="the order")
    connection, _ = silent_server.accept()

    with connection:
        process.send_signal(signal.SIGINT)
        ran = ended(process)

    assert ran.error["context"] == {"signal": "SIGINT", "outcome": "unknown", "change": "the order"}
    assert "nothing is half done" not in ran.error["suggestion"]
