"""The transport over HTTP: the Streamable HTTP of the SDK, served by uvicorn.

All clients share one runner, so what holds for the commands of one connection holds for those of
all connections.
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
"""How long the last responses may take to be sent."""

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def listen(address: HttpAddress) -> socket.socket:
    """Return a socket that listens on the address. Raise AddressUnavailable."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        return socket.create_server((address.host, address.port), family=family)
    except socket.gaierror as error:
        # Its number is not one of the system, so os.strerror() does not know it.
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
    """Serve until a signal makes `wake_up_descriptor` readable.

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
    """Serve a protocol until a signal makes `wake_up_descriptor` readable, then stop its work."""
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
    # A client may keep a stream open for events, and would keep the server from exiting.
    server.force_exit = True
    await asyncio.wait([serving], timeout=_SHUTDOWN_SECONDS)


class _Server(uvicorn.Server):
    """A server that leaves the signals alone: the tool has handlers of its own."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing, where the base class would replace the handlers of the tool."""
        yield


def _create_app(protocol: Protocol[Any], access: HttpAccess) -> Any:
    """Return the application that uvicorn serves. It refuses requests without access."""
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
    """Return an application that only serves requests with this bearer token."""
    expected_header = f"Bearer {token}".encode()

    async def check_token_and_serve(scope: Scope, receive: Receive, send: Send) -> None:
        # Other scopes, such as "lifespan", are not requests and have no headers.
        if scope["type"] == "http":
            header = dict(scope["headers"]).get(b"authorization", b"")
            # The time that comparing takes must not reveal how much of a guess is right.
            if not hmac.compare_digest(header, expected_header):
                await _respond_unauthorized(send)
                return
        await app(scope, receive, send)

    return check_token_and_serve


async def _respond_unauthorized(send: Send) -> None:
    headers = [(b"www-authenticate", b"Bearer"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
