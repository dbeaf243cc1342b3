"""sampletool/mcp/http_server.py: which requests are served, and how a server ends."""

import asyncio
import errno
import json
import os
import signal
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.safety.processes import is_running
from sampletool.kit.stepping.forked_process import ForkedProcess
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool, ended
from sampletool.kit.testing.waiting import wait_until
from sampletool.mcp.errors import AddressUnavailable
from sampletool.mcp.http_address import HttpAccess, HttpAddress
from tests.mcp.support import talk
from tests.mcp.test_connection import children_of

TOKEN = "a" * 16
ANY_HOST = "0.0.0.0"  # noqa: S104
_UNAUTHORIZED = [
    {
        "type": "http.response.start",
        "status": 401,
        "headers": [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")],
    },
    {"type": "http.response.body", "body": b""},
]
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@contextmanager
def serving(tool: Tool, *options: str, **environ: str) -> Iterator[tuple[ForkedProcess, str]]:
    """Start a server on a free port, and yield it with its URL."""
    fork_server().load("sampletool.mcp.http_server")
    server = tool.start("mcp", "--http", "127.0.0.1:0", *options, environ=environ)
    assert server.stderr is not None
    line = server.stderr.readline().decode()
    assert line.startswith("Listening on http://127.0.0.1:"), line
    try:
        yield server, line.removeprefix("Listening on ").strip()
    finally:
        server.terminate()
        ended(server)


def status_of(url: str, **headers: str) -> int:
    """Return the status of a request that opens a session."""
    request = urllib.request.Request(  # noqa: S310  # It is our own server.
        url,
        data=json.dumps(_HELLO).encode(),
        headers={
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **headers,
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=30) as response:  # noqa: S310
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def test_requests_for_another_host_or_from_another_origin_are_refused(tool: Tool) -> None:
    """A web page could reach the server through the name of its own server (DNS rebinding)."""
    with serving(tool) as (_server, url):
        port = url.split(":")[2].split("/")[0]

        assert status_of(url) == 200
        assert status_of(url, Origin=f"http://localhost:{port}") == 200
        assert status_of(url, Origin="http://evil.example") == 403
        assert status_of(url, Host="evil.example") == 421
        assert status_of(url, Host=f"localhost:{port}") == 200


def test_if_there_is_a_token_only_requests_with_it_are_served(tool: Tool) -> None:
    with serving(tool, "--host", "build.example", TOOL_MCP_TOKEN=TOKEN) as (_server, url):
        bearer = {"Authorization": f"Bearer {TOKEN}"}

        assert status_of(url) == 401
        assert status_of(url, Authorization=f"Bearer {TOKEN}x") == 401
        assert status_of(url, **bearer) == 200
        assert status_of(url, Host="build.example:80", **bearer) == 200
        assert status_of(url, Host="evil.example", **bearer) == 421


def test_a_server_that_others_can_reach_needs_a_name_and_a_token(tool: Tool) -> None:
    start = ("mcp", "--http", f"{ANY_HOST}:0", "--timeout", "15s")

    assert tool(*start).code == "VALIDATION_ERROR"
    assert tool(*start, "--host", "me").code == "TOKEN_REQUIRED"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EADDRINUSE, "while binding to an address"), "address already in use"),
        # The number of this error is not one of the system.
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "name or service not known",
        ),
    ],
)
def test_an_address_that_is_not_available_is_reported_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
    error: OSError,
    reason: str,
) -> None:
    from sampletool.mcp.http_server import listen

    def fail(*_arguments: object, **_options: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_server", fail)

    with pytest.raises(AddressUnavailable) as refused:
        listen(HttpAddress("host", 80))

    assert refused.value.message == f"Cannot listen on host:80: {reason}."


@pytest.mark.parametrize(
    ("host", "family"),
    [("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6), ("localhost", socket.AF_INET)],
)
def test_the_family_of_the_socket_fits_the_address(
    monkeypatch: pytest.MonkeyPatch,
    host: str,
    family: int,
) -> None:
    from sampletool.mcp.http_server import listen

    def note(*arguments: object, **options: object) -> object:
        return arguments, options

    monkeypatch.setattr(socket, "create_server", note)

    created: object = listen(HttpAddress(host, 80))

    assert created == (((host, 80),), {"family": family})


@pytest.mark.parametrize(
    ("kind", "headers", "sent"),
    [
        ("http", [(b"authorization", b"Bearer " + TOKEN.encode())], "served"),
        ("http", [(b"authorization", b"Bearer x")], _UNAUTHORIZED),
        ("http", [], _UNAUTHORIZED),
        ("lifespan", [], "served"),
    ],
)
def test_only_a_request_with_the_token_reaches_the_application(
    kind: str,
    headers: list[tuple[bytes, bytes]],
    sent: object,
) -> None:
    from sampletool.mcp.http_server import _require_token

    responses: list[dict[str, Any]] = []

    async def send(response: dict[str, Any]) -> None:
        responses.append(response)

    async def serve(_scope: object, _receive: object, _send: object) -> None:
        responses.append({"type": "served"})

    app = _require_token(serve, TOKEN)
    asyncio.run(app({"type": kind, "headers": headers}, None, send))

    expected = [{"type": "served"}] if sent == "served" else sent
    assert responses == expected


@pytest.mark.parametrize("token", [None, TOKEN])
def test_the_application_has_the_path_and_the_names_of_the_server(token: str | None) -> None:
    from mcp.server.transport_security import TransportSecuritySettings

    from sampletool.mcp.http_server import _create_app

    created: list[dict[str, Any]] = []

    def streamable_http_app(**options: Any) -> str:
        created.append(options)
        return "the application of the SDK"

    protocol: Any = SimpleNamespace(streamable_http_app=streamable_http_app)
    app = _create_app(protocol, HttpAccess(host_names=("me",), token=token))

    security = TransportSecuritySettings(
        allowed_hosts=["me", "me:*"],
        allowed_origins=["http://me", "http://me:*", "https://me", "https://me:*"],
    )
    assert created == [{"streamable_http_path": "/mcp", "transport_security": security}]
    assert (app == "the application of the SDK") is (token is None)


def test_a_signal_stops_the_work_and_then_the_server_which_prints_nothing_itself(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sampletool.mcp import http_server

    # On a busy machine, the end may take longer than a user should wait.
    monkeypatch.setattr(http_server, "_SHUTDOWN_SECONDS", 60)
    seen: list[object] = []
    handler = signal.getsignal(signal.SIGTERM)

    async def app(_scope: object, receive: Any, send: Any) -> None:
        for event in ("startup", "shutdown"):
            await receive()
            seen.append(event)
            await send({"type": f"lifespan.{event}.complete"})
            if event == "startup":
                os.write(writer, b"x")

    async def stop_work() -> None:
        seen.append("stop the work")
        assert signal.getsignal(signal.SIGTERM) is handler, "the handlers of the tool are gone"

    protocol: Any = SimpleNamespace(streamable_http_app=lambda **_options: app)
    access = HttpAccess(host_names=("me",), token=None)
    reader, writer = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = http_server.serve_protocol(protocol, listener, access, reader, stop_work)
        asyncio.run(serving)
    os.close(reader)
    os.close(writer)

    assert seen == ["startup", "stop the work", "shutdown"]
    assert capfd.readouterr() == ("", "")


def test_a_server_ends_although_a_client_keeps_a_stream_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sampletool.mcp import http_server

    # The first time, the server waits in vain. The second time must be enough on a busy machine.
    patience_seconds = iter([0.05, 60])

    async def wait(tasks: list[asyncio.Task[None]], timeout: float) -> None:
        assert timeout == http_server._SHUTDOWN_SECONDS
        await asyncio.wait(tasks, timeout=next(patience_seconds))

    patched = SimpleNamespace(**{**vars(asyncio), "wait": wait})
    monkeypatch.setattr(http_server, "asyncio", patched)

    async def app(scope: dict[str, Any], _receive: object, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"event", "more_body": True})
            await asyncio.Event().wait()

    async def stop_work() -> None:
        pass

    async def serve_stream() -> set[str]:
        serving = http_server.serve_protocol(protocol, listener, access, reader, stop_work)
        task = asyncio.create_task(serving)
        to_client, to_server = await asyncio.open_connection(*listener.getsockname())
        to_server.write(b"GET / HTTP/1.1\r\nHost: me\r\n\r\n")
        await to_client.readuntil(b"event")
        os.write(writer, b"x")
        await task
        assert not asyncio.get_running_loop().remove_reader(reader), "it still watches the pipe"
        left = {repr(each.get_coro()) for each in asyncio.all_tasks()}
        to_server.close()
        return {coroutine for coroutine in left if "Server.serve" in coroutine}

    protocol: Any = SimpleNamespace(streamable_http_app=lambda **_options: app)
    access = HttpAccess(host_names=("me",), token=None)
    reader, writer = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        left = asyncio.run(serve_stream())
    os.close(reader)
    os.close(writer)

    assert left == set(), "the server has not ended"


def test_an_address_in_use_is_an_error_that_says_what_to_do(tool: Tool) -> None:
    with serving(tool) as (_server, url):
        address = url.removeprefix("http://").removesuffix("/mcp")

        error = tool("mcp", "--http", address).error

    assert error["code"] == "ADDRESS_UNAVAILABLE"
    assert "already in use" in error["message"]


def test_two_clients_use_one_server_and_a_call_can_be_cancelled(
    tool: Tool,
    workspace: Path,
) -> None:
    from mcp import Client

    tool("config", "set", "warm", "1")
    here = {"cwd": str(workspace)}

    async def conversation() -> None:
        with serving(tool) as (server, url):
            async with Client(url) as first, Client(url) as second:
                with holding(workspace / ".tool" / "locks" / "tool.toml.lock"):
                    arguments = {"words": ["a=1"], "lock_timeout": "600s", **here}
                    waiting = asyncio.create_task(first.call_tool("config_set", arguments))
                    while not children_of(server.pid):
                        await asyncio.sleep(0.01)
                    read = await second.call_tool("config_get", {"key": "level", **here})
                    waiting.cancel()
                    while children_of(server.pid):
                        await asyncio.sleep(0.01)
                both = await asyncio.gather(*(_set(each, here) for each in (first, second)))

        assert read.structured_content["data"]["value"] == 1
        assert all(result.structured_content["ok"] for result in both)

    talk(conversation)

    assert "a = " not in (workspace / "tool.toml").read_text()


async def _set(client: Any, here: dict[str, str]) -> Any:
    arguments = {"words": [f"key{id(client)}=1"], "lock_timeout": "30s", **here}
    return await client.call_tool("config_set", arguments)


def test_a_signal_ends_the_server_and_its_commands_even_if_a_client_stays(
    tool: Tool,
    workspace: Path,
) -> None:
    from mcp import Client

    tool("config", "set", "warm", "1")
    children: list[int] = []

    async def conversation() -> None:
        with serving(tool) as (server, url):
            async with Client(url) as client:
                arguments = {"words": ["a=1"], "lock_timeout": "600s", "cwd": str(workspace)}
                waiting = asyncio.create_task(client.call_tool("config_set", arguments))
                while not children_of(server.pid):
                    await asyncio.sleep(0.01)
                children.extend(children_of(server.pid))
                server.terminate()
                while server.poll() is None:
                    await asyncio.sleep(0.01)
                assert server.returncode == -signal.SIGTERM
                waiting.cancel()

    with holding(workspace / ".tool" / "locks" / "tool.toml.lock"):
        talk(conversation)
        wait_until(lambda: not any(map(is_running, children)))
