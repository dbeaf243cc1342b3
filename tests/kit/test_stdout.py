"""sampletool/kit/stdout.py: only responses reach the real stdout, and people read stderr."""

import errno
import fcntl
import json
import os
import pty
import signal
import struct
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from sampletool.kit.safety.signals import Signals
from sampletool.kit.stdout import (
    STDERR,
    STDOUT,
    NoStdout,
    Stdout,
    write_response,
    write_stderr,
)


@dataclass(frozen=True)
class Streams:
    """Pipes or a terminal in place of stdout and stderr. Each is named by its reading end."""

    stdout_reader: int
    stderr_reader: int

    def read_stdout(self) -> bytes:
        """Return what was written to the real stdout until now."""
        return _read_all(self.stdout_reader)

    def read_stderr(self) -> bytes:
        """Return what was written to stderr until now."""
        return _read_all(self.stderr_reader)


def _read_all(reader: int) -> bytes:
    os.set_blocking(reader, False)
    try:
        return os.read(reader, 65_536)
    except BlockingIOError:
        return b""


@contextmanager
def streams(*, columns: int | None = None) -> Iterator[Streams]:
    """Replace stdout and stderr with pipes. With `columns`, stdout is a terminal of this width.

    This is no fixture: between the setup and the test, pytest restores both descriptors.
    """
    if columns is None:
        stdout_reader, stdout_writer = os.pipe()
    else:
        stdout_reader, stdout_writer = pty.openpty()
        rows_and_columns = struct.pack("HHHH", 24, columns, 0, 0)
        fcntl.ioctl(stdout_writer, termios.TIOCSWINSZ, rows_and_columns)
    stderr_reader, stderr_writer = os.pipe()
    real_stdout, real_stderr = os.dup(STDOUT), os.dup(STDERR)
    os.dup2(stdout_writer, STDOUT)
    os.dup2(stderr_writer, STDERR)
    try:
        yield Streams(stdout_reader, stderr_reader)
    finally:
        os.dup2(real_stdout, STDOUT)
        os.dup2(real_stderr, STDERR)
        ours = (stdout_reader, stdout_writer, stderr_reader, stderr_writer)
        for descriptor in (*ours, real_stdout, real_stderr):
            os.close(descriptor)


@contextmanager
def opened(signals: Signals | None = None) -> Iterator[Stdout]:
    """Open a Stdout until the block ends."""
    stdout = Stdout(Signals() if signals is None else signals)
    try:
        yield stdout
    finally:
        stdout.close()


class Failing(Signals):
    """Signals of a process whose stdout fails in one way, and whose stderr works."""

    def __init__(self, failure: OSError | None) -> None:
        super().__init__()
        self.failure = failure
        """What a write raises. If it is None, nobody reads, and the process has to stop."""
        self.writes = 0

    def write(self, descriptor: int, content: bytes) -> bool:
        """Fail, unless the descriptor is stderr."""
        if descriptor == STDERR:
            return super().write(descriptor, content)
        self.writes += 1
        if self.failure is not None:
            raise self.failure
        return False


# Descriptor 1 and the real stdout


def test_what_a_library_prints_goes_to_stderr_and_the_response_to_stdout() -> None:
    with streams() as outputs, opened() as stdout:
        os.write(STDOUT, b"noise")
        exit_code = stdout.write(b"response\n", 3)

        assert exit_code == 3
        assert outputs.read_stdout() == b"response\n"
        assert outputs.read_stderr() == b"noise"


def test_afterwards_descriptor_1_is_the_real_stdout_again_and_no_descriptor_is_left() -> None:
    with streams() as outputs:
        before = os.listdir("/proc/self/fd")
        with opened():
            pass
        after = os.listdir("/proc/self/fd")
        os.write(STDOUT, b"after")

        assert after == before
        assert outputs.read_stdout() == b"after"
        assert outputs.read_stderr() == b""


def test_what_a_library_has_not_flushed_goes_to_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    with streams() as outputs, open(STDOUT, "w", closefd=False) as buffered:
        monkeypatch.setattr(sys, "stdout", buffered)
        with opened():
            buffered.write("late")
        monkeypatch.undo()

        assert outputs.read_stderr() == b"late"
        assert outputs.read_stdout() == b""


@pytest.mark.parametrize("broken", ["missing", "closed"])
def test_a_sys_stdout_that_a_library_broke_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
) -> None:
    replacement = None
    if broken == "closed":
        with open(os.devnull, "w") as replacement:
            # Leaving the block closes it.
            pass
    problem = None
    with streams() as outputs:
        stdout = Stdout(Signals())
        monkeypatch.setattr(sys, "stdout", replacement)
        try:
            stdout.close()
        except Exception as error:
            problem = error
        monkeypatch.undo()
        os.write(STDOUT, b"after")

        assert problem is None
        assert outputs.read_stdout() == b"after"


def test_a_command_can_take_stdout_and_its_response_goes_to_stderr() -> None:
    with streams() as outputs, opened() as stdout:
        taken = stdout.take_descriptor()
        os.write(taken, b"protocol")
        os.close(taken)
        stdout.write(b"response\n", 0)

        assert outputs.read_stdout() == b"protocol"
        assert outputs.read_stderr() == b"response\n"


def test_where_a_response_is_returned_in_python_a_command_gets_a_copy_of_descriptor_1() -> None:
    with streams() as outputs:
        taken = NoStdout().take_descriptor()
        os.write(taken, b"protocol")
        is_copy = taken != STDOUT
        os.close(taken)

        assert is_copy
        assert outputs.read_stdout() == b"protocol"


# What is known about the reader


def test_a_program_gets_json() -> None:
    with streams(), opened() as stdout:
        assert stdout.is_terminal() is False
        assert stdout.default_format() == "json"
    assert NoStdout().default_format() == "json"


def test_a_person_at_a_terminal_gets_text() -> None:
    with streams(columns=80), opened() as stdout:
        assert stdout.is_terminal() is True
        assert stdout.default_format() == "text"


def test_stdout_is_stderr_if_both_lead_to_the_same_file() -> None:
    with streams(), opened() as stdout:
        is_stderr_before = stdout.is_stderr()
        os.dup2(stdout._descriptor, STDERR)

        assert is_stderr_before is False
        assert stdout.is_stderr() is True


def test_stdout_is_not_a_closed_stderr() -> None:
    with streams(), opened() as stdout:
        os.close(STDERR)

        assert stdout.is_stderr() is False


@pytest.mark.parametrize(
    ("variable", "width"),
    [("57", 57), ("1", 1), ("0", 80), ("-5", 80), ("wide", 80), ("", 80)],
)
def test_the_width_is_that_in_the_variable_columns_if_it_is_a_number(
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", variable)

    with streams(), opened() as stdout:
        assert stdout.width() == width


def test_the_variable_columns_wins_over_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "33")

    with streams(columns=57), opened() as stdout:
        assert stdout.width() == 33


@pytest.mark.parametrize(("columns", "width"), [(57, 57), (1, 1), (0, 80)])
def test_the_width_is_that_of_the_terminal_if_the_terminal_knows_it(
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    width: int,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)

    with streams(columns=columns), opened() as stdout:
        assert stdout.width() == width


def test_a_pipe_has_no_width_and_the_colors_of_the_option() -> None:
    with streams(), opened() as stdout:
        assert stdout.screen("always") == (None, True, True)
        assert stdout.screen("never") == (None, False, False)


@pytest.mark.parametrize(("term", "width"), [("xterm", 57), ("dumb", None)])
def test_a_terminal_has_a_width_unless_it_is_a_dumb_one(
    monkeypatch: pytest.MonkeyPatch,
    term: str,
    width: int | None,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TERM", term)

    with streams(columns=57), opened() as stdout:
        assert stdout.screen("auto").width == width


def test_stdout_and_stderr_each_have_colors_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")

    with streams(columns=57), opened() as stdout:
        screen = stdout.screen(None)

        assert screen.color is True
        assert screen.stderr_color is False


# Events


def test_each_event_is_a_line_of_json() -> None:
    with streams() as outputs, opened() as stdout:
        stdout.write_event({"event": "first"})
        stdout.write_event({"event": "second"})

        lines = outputs.read_stdout().splitlines()
        assert [json.loads(line)["event"] for line in lines] == ["first", "second"]


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), None])
def test_after_an_event_that_was_not_written_no_more_events_are_written(
    failure: OSError | None,
) -> None:
    signals = Failing(failure)
    with streams(), opened(signals) as stdout:
        stdout.write_event({"event": "lost"})
        stdout.write_event({"event": "not tried"})

        assert signals.writes == 1


# The exit code tells whether the response was written


@pytest.mark.parametrize("exit_code", [0, 5])
def test_a_reader_that_has_gone_does_not_change_the_exit_code(exit_code: int) -> None:
    gone = Failing(BrokenPipeError(errno.EPIPE, "gone"))
    with streams() as outputs:
        assert write_response(STDOUT, b"x", exit_code, gone) == exit_code
        assert outputs.read_stderr() == b""


@pytest.mark.parametrize(("exit_code", "expected"), [(0, 1), (5, 5)])
def test_a_failure_to_write_turns_a_success_into_a_failure(exit_code: int, expected: int) -> None:
    full = Failing(OSError(errno.ENOSPC, "full"))
    with streams() as outputs:
        assert write_response(STDOUT, b"x", exit_code, full) == expected
        reason = os.strerror(errno.ENOSPC)
        notice = f"The response could not be written: {reason}\n"
        assert outputs.read_stderr().decode() == notice


def test_a_failure_without_a_number_has_an_unknown_reason() -> None:
    with streams() as outputs:
        assert write_response(STDOUT, b"x", 0, Failing(OSError("odd"))) == 1
        assert outputs.read_stderr() == b"The response could not be written: unknown error\n"


@pytest.mark.parametrize(
    ("received", "exit_code", "expected"),
    [(None, 0, 10), (None, 5, 5), (signal.SIGTERM, 0, 143), (signal.SIGINT, 5, 5)],
)
def test_a_response_that_nobody_reads_in_time_turns_a_success_into_a_failure(
    received: int | None,
    exit_code: int,
    expected: int,
) -> None:
    stopped = Failing(None)
    stopped.received = received
    with streams() as outputs:
        assert write_response(STDOUT, b"x", exit_code, stopped) == expected
        assert b": nothing reads it, and the command has to stop\n" in outputs.read_stderr()


def test_a_line_on_stderr_shows_the_bytes_that_are_not_utf_8() -> None:
    with streams() as outputs:
        write_stderr("caf\udce9 ☃\n", Signals())

        assert outputs.read_stderr() == b"caf\\udce9 \xe2\x98\x83\n"


def test_a_closed_stderr_is_no_failure() -> None:
    problem = None
    with streams():
        os.close(STDERR)
        try:
            write_stderr("nobody reads this", Signals())
        except OSError as error:
            problem = error

        assert problem is None
