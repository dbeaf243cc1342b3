"""sampletool/audit/given_stdin.py: input that a program would not get is never lost silently."""

import os
import pty
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from sampletool.audit import given_stdin as module
from sampletool.audit.given_stdin import has_unread_stdin, refuse_unread_stdin
from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.testing.failing import failure_of, outcome_of


@contextmanager
def pipe(content: bytes) -> Iterator[int]:
    """Yield a pipe with this content, whose writer stays open."""
    reader, writer = os.pipe()
    with open(reader, "rb"), open(writer, "wb", buffering=0) as file:
        file.write(content)
        yield reader


@contextmanager
def socket_with(content: bytes) -> Iterator[int]:
    ours, others = socket.socketpair()
    with ours, others:
        others.send(content)
        yield ours.fileno()


@contextmanager
def terminal_with(content: bytes) -> Iterator[int]:
    """Yield a terminal into which somebody has typed this."""
    controller, terminal = pty.openpty()
    with open(controller, "wb", buffering=0) as file, open(terminal, "rb", buffering=0):
        file.write(content)
        yield terminal


@contextmanager
def file_with(content: bytes, read: int = 0) -> Iterator[int]:
    """Yield a file with this content, of which so many bytes have been read."""
    path = Path("input")
    path.write_bytes(content)
    with path.open("rb", buffering=0) as file:
        file.seek(read)
        yield file.fileno()


@contextmanager
def directory() -> Iterator[int]:
    descriptor = os.open(".", os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def nothing() -> Iterator[int]:
    """Yield a descriptor that is closed."""
    yield 1_000_000


@pytest.mark.parametrize(
    ("opened", "is_unread"),
    [
        (lambda: file_with(b"text"), True),
        (lambda: file_with(b"text", read=3), True),
        (lambda: file_with(b"text", read=4), False),
        (lambda: file_with(b""), False),
        (lambda: pipe(b"text"), True),
        (lambda: pipe(b""), False),
        (lambda: socket_with(b"text"), True),
        (lambda: socket_with(b""), False),
        # An agent may have left a terminal open, and nobody expects a program to read it.
        (lambda: terminal_with(b"text\n"), False),
        (directory, False),
        (nothing, False),
    ],
    ids=[
        *("a file", "the end of a file", "a file that was read", "an empty file"),
        *("a pipe", "an empty pipe", "a socket", "an empty socket"),
        *("a terminal", "a directory", "closed"),
    ],
)
def test_input_is_unread_if_a_file_a_pipe_or_a_socket_has_data(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    opened: Callable[[], AbstractContextManager[int]],
    is_unread: bool,
) -> None:
    monkeypatch.chdir(tmp_path)

    with opened() as descriptor:
        monkeypatch.setattr(module, "_STDIN", descriptor)
        assert outcome_of(has_unread_stdin) is is_unread


@pytest.mark.parametrize("is_unread", [True, False])
def test_unread_input_is_refused_with_both_ways_out(
    monkeypatch: pytest.MonkeyPatch,
    is_unread: bool,
) -> None:
    monkeypatch.setattr(module, "has_unread_stdin", lambda: is_unread)

    failure = failure_of(refuse_unread_stdin)

    mistake = Mistake(
        param="--stdin",
        code="MISSING",
        message="There is input on stdin, which the program would not get",
        suggestion="Pass --stdin to hand it to the program, or redirect stdin: `</dev/null`.",
    )
    if is_unread:
        assert isinstance(failure, InvalidValues), repr(failure)
        assert list(failure.mistakes) == [mistake]
    else:
        assert failure is None
