"""sampletool/kit/work/retries.py: bounded attempts, random pauses, and an end by a signal."""

import os
import signal
import socket
from collections.abc import Callable, Iterator

import pytest

from sampletool.kit.contract.errors import ExitStatus
from sampletool.kit.program import env_variable
from sampletool.kit.safety.errors import DeadlineExceeded, Interrupted
from sampletool.kit.safety.signals import Signals
from sampletool.kit.stepping.forked_process import ForkedProcess
from sampletool.kit.testing.probe import start_probe
from sampletool.kit.testing.tool import Tool, ended
from sampletool.kit.work.retries import RetriesExhausted, RetryPolicy, run_with_retries

_LONGEST_SECONDS = 60.0
"""The timeout for something that should happen at once. It is long enough for a busy machine."""


class RecordedSignals(Signals):
    """Signals that do not sleep, but record for how long they were asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    def wait(self, seconds: float, descriptors: object = ()) -> list[int]:
        self.pauses.append(seconds)
        return []


class Server:
    """Something that fails a number of times, and then responds."""

    def __init__(self, failures: int) -> None:
        self.calls = 0
        self._failures = failures

    def fetch(self) -> str:
        self.calls += 1
        if self.calls <= self._failures:
            raise ConnectionRefusedError(f"refusal {self.calls}")
        return "response"


POLICY = RetryPolicy(max_attempts=4, first_pause_seconds=1.0, longest_pause_seconds=3.0)


def fetch_from(
    server: Server,
    signals: Signals,
    retry_on: tuple[type[Exception], ...] = (ConnectionError,),
    notice: Callable[[str], None] = print,
    random_number: Callable[[], float] = lambda: 1.0,
) -> str:
    return run_with_retries(
        server.fetch,
        retry_on,
        POLICY,
        signals,
        changes="the order",
        notice=notice,
        random_number=random_number,
    )


def test_a_function_that_succeeds_is_called_once() -> None:
    server = Server(failures=0)
    signals = RecordedSignals()

    response = fetch_from(server, signals)

    assert (response, server.calls, signals.pauses) == ("response", 1, [])


def test_a_function_that_fails_is_called_again() -> None:
    server = Server(failures=3)

    response = fetch_from(server, RecordedSignals())

    assert (response, server.calls) == ("response", 4)


def test_the_longest_pause_doubles_up_to_a_limit() -> None:
    signals = RecordedSignals()

    fetch_from(Server(failures=3), signals)

    assert signals.pauses == [1.0, 2.0, 3.0]


def test_a_pause_is_a_random_part_of_the_longest() -> None:
    signals = RecordedSignals()
    numbers = iter([0.5, 0.0, 0.25])

    fetch_from(Server(failures=3), signals, random_number=lambda: next(numbers))

    assert signals.pauses == [0.5, 0.0, 0.75]


def test_by_default_two_clients_pause_for_different_times() -> None:
    pauses = []
    for _ in range(2):
        signals = RecordedSignals()
        run_with_retries(Server(failures=3).fetch, (ConnectionError,), POLICY, signals)
        pauses.append(signals.pauses)

    assert pauses[0] != pauses[1]


def test_the_pause_after_many_attempts_has_the_limit_too() -> None:
    assert RetryPolicy().pause_limit(10_000) == 30.0


def test_after_the_last_attempt_the_error_says_how_often_it_was_tried_and_why_it_failed() -> None:
    server = Server(failures=10)
    signals = RecordedSignals()

    with pytest.raises(RetriesExhausted, match=r"^refusal 4 \(tried 4 times\)$") as caught:
        fetch_from(server, signals)

    assert caught.value.attempts == server.calls == 4
    assert caught.value.__cause__ is caught.value.last_error
    assert isinstance(caught.value.last_error, ConnectionRefusedError)
    assert len(signals.pauses) == 3


def test_an_error_without_a_text_is_named_by_its_class() -> None:
    assert str(RetriesExhausted(1, TimeoutError())) == "TimeoutError (tried once)"


def test_an_error_of_another_type_is_raised_at_once() -> None:
    server = Server(failures=10)

    with pytest.raises(ConnectionRefusedError):
        fetch_from(server, RecordedSignals(), retry_on=(TimeoutError,))

    assert server.calls == 1


@pytest.mark.parametrize("error", [Interrupted(signal.SIGINT), DeadlineExceeded(1.0)])
def test_a_command_that_has_to_stop_is_not_tried_again(error: Exception) -> None:
    calls: list[int] = []

    def stop() -> None:
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        run_with_retries(stop, (Exception,), POLICY, RecordedSignals())

    assert len(calls) == 1


def test_each_failed_attempt_is_noticed() -> None:
    lines: list[str] = []

    fetch_from(Server(failures=2), RecordedSignals(), notice=lines.append)

    assert lines == [
        "attempt 1 of 4 failed: refusal 1. Trying again in 1.0 s",
        "attempt 2 of 4 failed: refusal 2. Trying again in 2.0 s",
    ]


def test_a_signal_ends_the_pause() -> None:
    signals = Signals()
    signals.install()
    policy = RetryPolicy(first_pause_seconds=_LONGEST_SECONDS)
    server = Server(failures=1)

    def interrupt(_line: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    try:
        with pytest.raises(Interrupted) as caught:
            run_with_retries(
                server.fetch,
                (ConnectionError,),
                policy,
                signals,
                changes="the order",
                notice=interrupt,
                random_number=lambda: 1.0,
            )
    finally:
        signals.uninstall()

    assert server.calls == 1
    assert caught.value.uncertain_change == "the order"


def test_if_the_deadline_is_before_the_next_attempt_the_reason_is_reported_at_once() -> None:
    signals = RecordedSignals()
    signals.limit(_LONGEST_SECONDS)
    policy = RetryPolicy(first_pause_seconds=2 * _LONGEST_SECONDS, longest_pause_seconds=1000.0)

    with pytest.raises(RetriesExhausted, match=r"^refusal 1 \(tried once\)$"):
        run_with_retries(
            Server(failures=1).fetch,
            (ConnectionError,),
            policy,
            signals,
            random_number=lambda: 1.0,
        )

    assert signals.pauses == []


# In a command, with a real server


_FETCH = """
from urllib.request import urlopen
from sampletool.kit.work.retries import RetriesExhausted, RetryPolicy

def fetch(url):
    with urlopen(url, timeout={server_timeout}) as response:
        return response.read().decode()

try:
    said = context.retrying(
        fetch,
        {url!r},
        retry_on=(OSError,),
        retry_policy=RetryPolicy(max_attempts=3, first_pause_seconds={pause}),
        changes="the order",
    )
except RetriesExhausted as error:
    said = str(error)
return Result(said)
"""


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Return a socket that clients can connect to. Nothing responds to them."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(_LONGEST_SECONDS)
        yield server


def _start_fetch(
    tool: Tool, server: socket.socket, *args: str, server_timeout: float, pause: float
) -> ForkedProcess:
    host, port = server.getsockname()
    url = f"http://{host}:{port}/"
    program = _FETCH.format(url=url, server_timeout=server_timeout, pause=pause)
    return start_probe(tool, program, *args)


def test_a_server_that_responds_to_the_second_attempt_was_worth_a_retry(
    tool: Tool, server: socket.socket
) -> None:
    process = _start_fetch(tool, server, server_timeout=_LONGEST_SECONDS, pause=0.01)

    first, _ = server.accept()
    first.close()
    second, _ = server.accept()
    with second:
        second.recv(4096)
        second.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n42")
        ran = ended(process)

    assert ran.data == {"said": "42"}


def test_a_silent_server_is_tried_again_and_the_error_says_how_often(
    tool: Tool, server: socket.socket
) -> None:
    process = _start_fetch(tool, server, "--verbose", server_timeout=0.05, pause=0.01)

    ran = ended(process)

    assert ran.data == {"said": "timed out (tried 3 times)"}
    assert b"attempt 1 of 3 failed" in ran.stderr
    assert b"attempt 2 of 3 failed" in ran.stderr


def test_ctrl_c_ends_the_pause_before_a_retry(tool: Tool, server: socket.socket) -> None:
    process = _start_fetch(
        tool, server, "--verbose", server_timeout=_LONGEST_SECONDS, pause=1_000_000
    )
    connection, _ = server.accept()
    connection.close()
    assert process.stderr is not None
    # The pause begins after this line.
    while b"Trying again" not in process.stderr.readline():
        pass

    process.send_signal(signal.SIGINT)
    ran = ended(process)

    assert (ran.status, ran.code) == (-signal.SIGINT, "INTERRUPTED")
    assert ran.error["context"]["outcome"] == "unknown"


def test_the_timeout_ends_an_attempt(tool: Tool, server: socket.socket) -> None:
    tool.environ[env_variable("TIMEOUT")] = "1s"

    ran = ended(_start_fetch(tool, server, server_timeout=_LONGEST_SECONDS, pause=0.01))

    assert (ran.status, ran.code) == (ExitStatus.TIMEOUT, "TIMEOUT")
