"""Serves MCP over HTTP: the Streamable HTTP transport of the MCP SDK, run by uvicorn.

All clients share one `CommandRunner`. So its limits and locks apply to the commands of all clients
together.
"""

import asyncio
import hmac
import os
import socket
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import uvicorn
from mcp.server import Server as Protocol
from mcp.server.transport_security import TransportSecuritySettings

from .errors import AddressUnavailable
from .http_address import HttpAccess, HttpAddress
from .protocol import Tools, create_protocol
from .runner import CommandRunner

PATH = "/mcp"
"""The path of the server's URL."""

_SHUTDOWN_SECONDS = 0.3
"""How long the server waits for the last responses to be sent, before it closes connections."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def listen(address: HttpAddress) -> socket.socket:
    """Return a socket that listens on the address. Raise AddressUnavailable if that fails."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except socket.gaierror as error:
        # Looking up a host name has error numbers of its own, which os.strerror() does not know.
        reason = str(error.strerror).lower()
        raise AddressUnavailable(address=str(address), reason=reason) from error
    except OSError as error:
        reason = os.strerror(error.errno or 0).lower()
        raise AddressUnavailable(address=str(address), reason=reason) from error


async def serve_http(
    listener: socket.socket,
    access: HttpAccess,
    wake_up_descriptor: int,
    loading: asyncio.Future[Tools],
) -> int:
    """Serve all clients of a listening socket, until this process receives a signal.

    `wake_up_descriptor` becomes readable when the signal arrives. `loading` returns the tools, and
    clients can send requests before the tools are loaded.

    Return how many commands were run.
    """
    runner = CommandRunner()
    protocol = create_protocol(runner, loading)
    await serve_protocol(protocol, listener, access, wake_up_descriptor, runner.stop_all)
    return runner.count


async def serve_protocol(
    protocol: Protocol[Any],
    listener: socket.socket,
    access: HttpAccess,
    wake_up_descriptor: int,
    stop_work: Callable[[], Awaitable[None]],
) -> None:
    """Serve all clients until `wake_up_descriptor` is readable, then stop the work and the server.

    `stop_work` is called before the server stops, so that interrupted commands can still respond.
    """
    app = _create_app(protocol, access)
    config = uvicorn.Config(app, log_config=None)
    server = _Server(config)

    is_over = asyncio.Event()
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    serving.add_done_callback(lambda _task: is_over.set())
    loop = asyncio.get_running_loop()
    loop.add_reader(wake_up_descriptor, is_over.set)
    await is_over.wait()

    loop.remove_reader(wake_up_descriptor)
    await stop_work()
    server.should_exit = True
    await asyncio.wait([serving], timeout=_SHUTDOWN_SECONDS)
    # A client may keep a stream open, to wait for events. Without `force_exit`, the server would
    # wait for this client.
    server.force_exit = True
    await asyncio.wait([serving], timeout=_SHUTDOWN_SECONDS)


class _Server(uvicorn.Server):
    """A server that does not handle signals, because the tool handles them."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Keep the signal handlers of the tool, which the base class would replace."""
        yield


def _create_app(protocol: Protocol[Any], access: HttpAccess) -> Any:
    """Return the web application for uvicorn, which refuses the requests that `access` forbids."""
    app = protocol.streamable_http_app(
        streamable_http_path=PATH,
        transport_security=TransportSecuritySettings(
            allowed_hosts=access.allowed_hosts(),
            allowed_origins=access.allowed_origins(),
        ),
    )
    if access.token is None:
        return app
    return _require_token(app, access.token)


def _require_token(app: Any, token: str) -> Any:
    """Wrap an application, so that it only serves requests with this bearer token."""
    expected_header = f"Bearer {token}".encode()

    async def check_token_and_serve(scope: Scope, receive: Receive, send: Send) -> None:
        # A scope of another type, such as "lifespan", is not a request and has no headers.
        if scope["type"] == "http":
            header = dict(scope["headers"]).get(b"authorization", b"")
            # Compare in constant time. Otherwise, the time of the comparison would reveal how many
            # characters of a guessed token are right.
            if not hmac.compare_digest(header, expected_header):
                await _respond_unauthorized(send)
                return
        await app(scope, receive, send)

    return check_token_and_serve


async def _respond_unauthorized(send: Send) -> None:
    headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
