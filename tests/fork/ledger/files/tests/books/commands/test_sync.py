"""ledger sync"""

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger.kit.testing.tool import Tool, ended

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
FORBIDDEN = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture
def server() -> Iterator[socket.socket]:
    """Return a socket that clients can connect to."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


@pytest.fixture
def url(tool: Tool, workspace: Path, server: socket.socket) -> str:
    """Return the address of the server. The workspace has a booking to send."""
    tool("add", "tea-1", "2026-01-31", "cash", "350", "Tea")
    host, port = server.getsockname()
    return f"http://{host}:{port}/bookings"


def respond(server: socket.socket, response: bytes) -> bytes:
    """Read one whole request, send this response, and return the request."""
    connection, _ = server.accept()
    with connection:
        request = b""
        while not request.endswith(b"}]"):
            received = connection.recv(4096)
            assert received, "the command closed the connection"
            request += received
        connection.sendall(response)
    return request


def test_a_busy_server_gets_the_bookings_later(
    tool: Tool,
    server: socket.socket,
    url: str,
) -> None:
    process = tool.start("sync", url)

    respond(server, BUSY)
    request = respond(server, OK)

    assert ended(process).data == {"effect": "updated", "bookings": 1}
    assert request.startswith(b"POST /bookings")
    assert b'"reference": "tea-1"' in request


def test_after_the_last_attempt_callers_learn_when_to_try_again(
    tool: Tool,
    server: socket.socket,
    url: str,
) -> None:
    process = tool.start("sync", url)

    for _ in range(3):
        respond(server, BUSY)
    error = ended(process).error

    assert (error["code"], error["retryable"]) == ("SYNC_FAILED", True)
    assert error["retry_after_ms"] == 5_000
    assert "tried 3 times" in error["message"]


def test_a_request_that_is_refused_is_not_retryable(
    tool: Tool,
    server: socket.socket,
    url: str,
) -> None:
    process = tool.start("sync", url)

    respond(server, FORBIDDEN)
    error = ended(process).error

    assert (error["code"], error["retryable"]) == ("SYNC_FAILED", False)
    assert "403" in error["message"]


def test_ctrl_c_ends_the_wait_for_a_silent_server(
    tool: Tool,
    server: socket.socket,
    url: str,
) -> None:
    process = tool.start("sync", url)
    connection, _ = server.accept()

    with connection:
        process.send_signal(signal.SIGINT)
        ran = ended(process)

    assert (ran.status, ran.code) == (-signal.SIGINT, "INTERRUPTED")
    assert ran.error["context"]["outcome"] == "unknown"


def test_the_timeout_ends_the_wait_for_a_silent_server(tool: Tool, url: str) -> None:
    ran = tool("sync", url, "--timeout", "1s")

    assert (ran.status, ran.code) == (10, "TIMEOUT")


def test_a_dry_run_sends_nothing(tool: Tool, server: socket.socket, url: str) -> None:
    server.close()

    assert tool("sync", url, "--dry-run").data == {"effect": "updated", "bookings": 1}


@pytest.mark.parametrize("url", ["books", "http://", "http://u:secret@books.example/bookings"])
def test_a_url_that_cannot_be_used_is_refused(tool: Tool, url: str) -> None:
    ran = tool("sync", url)

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert b"secret" not in ran.stdout + ran.stderr
