"""The commands as tools of the Model Context Protocol, over stdin and stdout."""

import asyncio
import gc
import os
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import typer

from ...kit.context import Context
from ...kit.contract.command_spec import CommandSpec
from ...kit.contract.errors import ExtraNotInstalled
from ...kit.contract.response import Format, value_text
from ...kit.contract.text import counted
from ...kit.extras import needing
from ...kit.program import PROGRAM
from ..calls import COMMAND

spec = CommandSpec(effect="nothing", errors=(ExtraNotInstalled,), takes_stdout=True, examples=("mcp --print-config",))


@dataclass(frozen=True)
class Config:
    value: dict[str, Any]
    default_format: ClassVar[Format] = "raw"

    def lines(self) -> list[str]:
        return [value_text(self.value)]


class Served(NamedTuple):
    calls: int

    def lines(self) -> list[str]:
        return [f"The connection has ended after {counted(self.calls, 'call')}."]


def serve(context: Context) -> int:
    """How many calls were made. Descriptors 0 and 1 are moved away first: nothing can read or spoil the protocol."""
    with needing("mcp", "The MCP server"):
        from ..server import serve as server
    gc.enable()
    stdin, stdout = os.dup(0), context.take_stdout()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for descriptor in (stdin, stdout):
        os.set_blocking(descriptor, True)
    return asyncio.run(server(stdin, stdout, context.signals.wake_up_descriptor))


def command(
    ctx: typer.Context,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print what to put into the settings of a client.")
    ] = False,
) -> Config | Served:
    """Serve the commands as tools, over stdin and stdout.

    For a client of the Model Context Protocol, which starts it. It ends when stdin ends; calls that still run are
    stopped as by a signal. What is not the protocol goes to stderr. Needs the extra `mcp`.
    """
    context: Context = ctx.obj
    if print_config:
        workspace = context.workspace_or_none
        where = ["--cwd", str(workspace)] if workspace else []
        return Config({"mcpServers": {PROGRAM: {"command": COMMAND[0], "args": [*COMMAND[1:], *where, "mcp"]}}})
    served = Served(serve(context))
    context.signals.check()
    return served
