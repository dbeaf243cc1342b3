"""The address of the HTTP server, and who may use it.

A server on the loopback address can only be reached from this machine. But a web page in a browser
on this machine can reach it too, if the name of its own server resolves to 127.0.0.1 (DNS
rebinding). So the server refuses requests that name another host or come from another origin. A
server that other machines can reach needs a token in addition.
"""

import ipaddress
import os
from dataclasses import dataclass

from ..kit.program import env_variable
from .errors import TokenRequired

TOKEN_VARIABLE = env_variable("MCP_TOKEN")
"""The environment variable with the token. Other users could see an option in the process list."""

MIN_TOKEN_CHARACTERS = 16

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class HttpAddress:
    """An address to listen on."""

    host: str
    port: int

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        """Return the address as it is part of a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class HttpAccess:
    """Who may use the server."""

    host_names: tuple[str, ...]
    """The names of the server that a request may have in its `Host` and `Origin` headers."""
    token: str | None
    """The token that each request needs. None means that none is needed."""

    def allowed_hosts(self) -> list[str]:
        """Return the allowed `Host` headers, with and without a port."""
        return [*self.host_names, *(f"{name}:*" for name in self.host_names)]

    def allowed_origins(self) -> list[str]:
        """Return the allowed `Origin` headers, with and without a port."""
        origins = []
        for name in self.host_names:
            for scheme in ("http", "https"):
                origins += [f"{scheme}://{name}", f"{scheme}://{name}:*"]
        return origins


def parse_address(text: str) -> HttpAddress:
    """Return the address in a text such as `127.0.0.1:8765` or `[::1]:8765`.

    Raise ValueError, with a message for the user, if there is none.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and int(port) <= 65535
    if not colon or not host or not is_port:
        raise ValueError(f"{text!r} is not an address such as 127.0.0.1:8765")
    return HttpAddress(host, int(port))


def check_access(address: HttpAddress, host_name: str | None) -> HttpAccess:
    """Return who may use a server at this address.

    `host_name` is the name of the server on other machines. Without it, the address must be a
    loopback address. Raise ValueError if it is not, and TokenRequired if there is no good token.
    """
    token = os.environ.get(TOKEN_VARIABLE) or None
    if host_name is None:
        if not address.is_loopback:
            raise ValueError(
                f"{address.host} is not a loopback address. "
                "To allow clients on other machines, pass --host with the name of this machine"
            )
        return HttpAccess(host_names=_LOOPBACK_NAMES, token=token)
    problem = _find_token_problem(token)
    if problem is not None:
        raise TokenRequired(
            address=str(address),
            problem=problem,
            variable=TOKEN_VARIABLE,
            length=MIN_TOKEN_CHARACTERS,
        )
    return HttpAccess(host_names=(host_name, *_LOOPBACK_NAMES), token=token)


def _find_token_problem(token: str | None) -> str | None:
    """Return why other machines may not reach a server with this token, or None if they may."""
    if token is None:
        return f"{TOKEN_VARIABLE} is not set"
    if len(token) < MIN_TOKEN_CHARACTERS:
        return f"the one in {TOKEN_VARIABLE} is too short"
    return None
