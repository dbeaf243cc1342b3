"""Connections to a server, as a client of the protocol has them: with the client of the SDK."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from importlib.util import find_spec
from typing import Any, Literal

import pytest

from sampletool.kit.stepping.forked_process import ForkedProcess
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.tool import COMMAND, Tool

MISSING = "the extra mcp is not installed: make .venv/.testable"

# Importing it takes 0.4 s, in each worker that collects these tests. So they import it themselves.
if find_spec("mcp") is None:
    pytest.skip(MISSING, allow_module_level=True)


def start_server(tool: Tool, *options: str) -> ForkedProcess:
    """Start a server in a forked process. It need not load the SDK, because the fork server has."""
    fork_server().load("sampletool.mcp.stdio")
    return tool.start("mcp", *options)


@asynccontextmanager
async def connected(
    tool: Tool,
    *options: str,
    mode: Literal["legacy", "auto"] = "auto",
) -> AsyncIterator[Any]:
    """Yield the client of a new server, which exits at the end of the block.

    What the server prints to stderr goes into a file.
    """
    from mcp import Client, StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "mcp", *options],
        env=tool.environ,
        cwd=tool.cwd,
    )
    with (tool.cwd.parent / "stderr").open("a") as log:
        async with Client(stdio_client(server, errlog=log), mode=mode) as client:
            yield client


@asynccontextmanager
async def connected_cheaply(tool: Tool, *options: str) -> AsyncIterator[Any]:
    """Yield the client of a forked server, whose start takes a tenth of the time.

    This is for tests that are not about the connection.
    """
    from mcp import Client

    async with Client(streams_of(start_server(tool, *options))) as client:
        yield client


@asynccontextmanager
async def streams_of(server: ForkedProcess) -> AsyncIterator[Any]:
    """Yield a transport of the SDK: a stream of incoming messages, and one of outgoing ones."""
    import anyio
    from mcp import types
    from mcp.shared.message import SessionMessage

    assert server.stdin is not None
    assert server.stdout is not None
    stdin, stdout = server.stdin, server.stdout
    to_client, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, from_client = anyio.create_memory_object_stream[Any](0)

    async def read() -> None:
        # BrokenResourceError: the client has gone.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            while line := await anyio.to_thread.run_sync(stdout.readline):
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                await to_client.send(SessionMessage(message))

    async def write() -> None:
        async for item in from_client:
            stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode())
            stdin.write(b"\n")
            stdin.flush()

    with server:
        async with to_client, incoming, outgoing, from_client, anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(write)
            try:
                yield incoming, outgoing
            finally:
                incoming.close()
                outgoing.close()
                # The server exits, so the thread that reads its stdout ends.
                stdin.close()


def talk(conversation: Callable[[], Coroutine[Any, Any, None]], seconds: float = 60) -> None:
    """Run a conversation with a server. Fail if it takes longer than this.

    A failed assertion is raised as it is, not inside the groups of the tasks of the SDK.
    """
    try:
        asyncio.run(asyncio.wait_for(conversation(), seconds))
    except BaseExceptionGroup as group:
        failed_assertions, _others = group.split(AssertionError)
        if failed_assertions is None:
            raise
        raise _first_leaf(failed_assertions) from group


def _first_leaf(error: BaseException) -> BaseException:
    """Return the first error in a group that is not a group itself."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
