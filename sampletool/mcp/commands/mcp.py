"""Serve the commands as MCP tools, over stdin and stdout or over HTTP."""

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import ExtraNotInstalled, InvalidValues, Mistake
from ...kit.contract.response import Format, value_text
from ...kit.contract.text import counted
from ...kit.extras import needing
from ...kit.global_options import checked_by
from ...kit.program import PROGRAM
from ..errors import AddressUnavailable, TokenRequired
from ..http_address import TOKEN_VARIABLE, HttpAccess, HttpAddress, check_access, parse_address
from ..runner import COMMAND
from ..selection import parse_parts
from ..threads import in_thread
from ..tools import Tool, load_tools

spec = CommandSpec(
    effect="nothing",
    errors=(ExtraNotInstalled, AddressUnavailable, TokenRequired),
    takes_stdout=True,
    examples=("mcp --print-config", "mcp --only state,sample --print-config"),
)

Tools = dict[str, Tool]
Serve = Callable[[asyncio.Future[Tools]], Awaitable[int]]
"""Serves clients until the connection ends, and returns how many commands were run."""


@dataclass(frozen=True)
class ClientConfig:
    """The configuration that tells a client how to start the server."""

    value: dict[str, Any]
    default_format: ClassVar[Format] = "raw"

    def lines(self) -> list[str]:
        """Return the configuration as JSON, ready to be pasted into the settings of a client."""
        return [value_text(self.value)]


@dataclass(frozen=True)
class Served:
    """The response of a server that has exited."""

    calls: int
    """How many commands were run."""

    def lines(self) -> list[str]:
        """Return a sentence with the number of commands."""
        return [f"The server has exited after {counted(self.calls, 'command')}."]


def serve_over_stdio(context: Context, load: Callable[[], Tools]) -> int:
    """Serve the client that has started this process. Return how many commands were run.

    `load` loads the tools. The connection moves from the descriptors 0 and 1 to other ones, so that
    a library that reads stdin or prints something cannot disturb it.
    """
    with needing("mcp", "The MCP server"):
        # Importing the SDK takes 0.4 s.
        from ..stdio import serve_stdio
    stdin = os.dup(0)
    stdout = context.take_stdout()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor in (stdin, stdout):
        os.set_blocking(descriptor, True)
    wake_up_descriptor = context.signals.wake_up_descriptor
    return _run_server(partial(serve_stdio, stdin, stdout, wake_up_descriptor), load)


def serve_over_http(
    context: Context,
    address: HttpAddress,
    access: HttpAccess,
    load: Callable[[], Tools],
) -> int:
    """Serve all clients that connect to the address. Return how many commands were run.

    `access` says which clients are allowed. `load` loads the tools.
    """
    with needing("mcp", "The MCP server"):
        # Importing the SDK takes 0.4 s.
        from ..http_server import PATH, listen, serve_http
    with listen(address) as listener:
        # If the port in the address is 0, the system has chosen a free port.
        port = listener.getsockname()[1]
        context.notice(f"Listening on http://{HttpAddress(address.host, port)}{PATH}")
        wake_up_descriptor = context.signals.wake_up_descriptor
        return _run_server(partial(serve_http, listener, access, wake_up_descriptor), load)


def _run_server(serve: Serve, load: Callable[[], Tools]) -> int:
    """Run a server, and load its tools at the same time. Return how many commands were run."""
    # At its start, the tool turns garbage collection off, because most commands only take
    # milliseconds. A server runs much longer.
    gc.enable()

    async def run() -> int:
        loading = asyncio.create_task(in_thread(load))
        return await serve(loading)

    return asyncio.run(run())


def _client_config(context: Context, options: list[str]) -> ClientConfig:
    """Return the configuration with which a client starts the server in this workspace."""
    arguments = COMMAND[1:]
    workspace = context.workspace_or_none
    if workspace is not None:
        arguments = [*arguments, "--cwd", str(workspace)]
    server = {"command": COMMAND[0], "args": [*arguments, "mcp", *options]}
    return ClientConfig({"mcpServers": {PROGRAM: server}})


def command(
    ctx: typer.Context,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="PART,...",
            callback=checked_by(parse_parts),
            help="Offer only the commands of these parts, for example state,sample.",
        ),
    ] = None,
    offer_all: Annotated[
        bool,
        typer.Option("--all", help="Offer all commands."),
    ] = False,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            callback=checked_by(parse_address),
            help="Listen on this address, for example 127.0.0.1:8765, "
            "instead of using stdin and stdout.",
        ),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Also accept clients on other machines that use this name for the server. "
            f"Requires a token in {TOKEN_VARIABLE}.",
        ),
    ] = None,
    print_config: Annotated[
        bool,
        typer.Option(
            "--print-config", help="Print the configuration to paste into a client, and exit."
        ),
    ] = False,
) -> ClientConfig | Served:
    """Serve the commands as tools for AI agents.

    This is a server for the Model Context Protocol (MCP). Usually, the agent's client starts it and
    stops it again. To connect several clients to one server, start it yourself with --http.

    By default, the server offers only the commands that agents need most, because the description
    of each command costs tokens. Needs the extra `mcp`.
    """
    context: Context = ctx.obj
    if host is not None and http is None:
        problem = "--host needs --http: a server on stdin and stdout has no other clients"
        hint = "Pass --http with the address to listen on, or leave --host out."
        raise InvalidValues(Mistake("--host", "INVALID_VALUE", problem, host, hint))
    options = []
    if only is not None:
        options += ["--only", only]
    if offer_all:
        options.append("--all")
    if print_config:
        return _client_config(context, options)

    parts = [] if only is None else parse_parts(only)
    load = partial(load_tools, only=parts, offer_all=offer_all)
    if http is None:
        served = Served(serve_over_stdio(context, load))
    else:
        address = parse_address(http)
        try:
            access = check_access(address, host)
        except ValueError as error:
            raise InvalidValues(Mistake("--http", "INVALID_VALUE", str(error), http)) from error
        served = Served(serve_over_http(context, address, access, load))
    context.signals.check()
    return served
