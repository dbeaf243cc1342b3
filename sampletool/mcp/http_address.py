"""The address of the HTTP server, and the rules for who may use the server.

Only this machine can reach a server on a loopback address. But an attack called DNS rebinding works
even then: a web page in a browser on this machine sends requests to the name of its own server,
which now resolves to 127.0.0.1. So the server checks the `Host` and `Origin` headers, and refuses
requests with other names than its own. A server that other machines can reach also requires a
token.
"""

import ipaddress
import os
from dataclasses import dataclass

from ..kit.program import env_variable
from .errors import TokenRequired

TOKEN_VARIABLE = env_variable("MCP_TOKEN")
"""The environment variable that contains the token.

There is no option for the token, because other users could see it in the list of processes.
"""

MIN_TOKEN_CHARACTERS = 16

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True)
class HttpAddress:
    """An address for the server to listen on."""

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
        """Return the address in the form for a URL, with brackets around an IPv6 address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True)
class HttpAccess:
    """Who may use the server: what a request must contain to be served."""

    host_names: tuple[str, ...]
    """The names of the server that are allowed in the `Host` and `Origin` headers."""
    token: str | None
    """The token that each request must contain, or None if requests need no token."""

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

    Raise ValueError, with a message for the user, if the text is not an address.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    is_port = port.isascii() and port.isdecimal() and int(port) <= 65535
    if not colon or not host or not is_port:
        raise ValueError(f"{text!r} is not an address such as 127.0.0.1:8765")
    return HttpAddress(host, int(port))


def check_access(address: HttpAddress, host_name: str | None) -> HttpAccess:
    """Return who may use a server that listens on this address.

    `host_name` is the name that other machines use for the server, or None if only this machine may
    use it. Raise ValueError if `host_name` is None but the address is not a loopback address. Raise
    TokenRequired if other machines may use the server, and the token is missing or too short.
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
    """Return why a token is not secure enough for other machines, or None if it is."""
    if token is None:
        return f"{TOKEN_VARIABLE} is not set"
    if len(token) < MIN_TOKEN_CHARACTERS:
        return f"the one in {TOKEN_VARIABLE} is too short"
    return None
