"""The server as a client of the protocol has it: the SDK's own, over stdio."""

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

if find_spec("mcp") is None:  # to import it takes 0.4 s, in each worker that collects these tests
    pytest.skip(MISSING, allow_module_level=True)


def start_server(tool: Tool) -> ForkedProcess:
    """Start a server that need not load the SDK: the fork server has."""
    fork_server().load("sampletool.mcp.server")
    return tool.start("mcp")


@asynccontextmanager
async def connected(tool: Tool, mode: Literal["legacy", "auto"] = "auto") -> AsyncIterator[Any]:
    """A client of a server of its own, which ends with the block; what the server says goes to a file beside."""
    from mcp import Client, StdioServerParameters, stdio_client

    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=tool.environ, cwd=tool.cwd)
    with (tool.cwd.parent / "stderr").open("a") as log:
        async with Client(stdio_client(server, errlog=log), mode=mode) as client:
            yield client


@asynccontextmanager
async def connected_cheaply(tool: Tool) -> AsyncIterator[Any]:
    """The same with a forked server, whose start takes a tenth of the time. For what is not about the connection."""
    from mcp import Client

    async with Client(_streams_of(start_server(tool))) as client:
        yield client


@asynccontextmanager
async def _streams_of(server: ForkedProcess) -> AsyncIterator[Any]:
    """A transport as the SDK has them: messages that come, and messages that go."""
    import anyio
    from mcp import types
    from mcp.shared.message import SessionMessage

    assert server.stdin is not None
    assert server.stdout is not None
    stdin, stdout = server.stdin, server.stdout
    heard, coming = anyio.create_memory_object_stream[Any](0)
    going, spoken = anyio.create_memory_object_stream[Any](0)

    async def hear() -> None:
        with suppress(anyio.BrokenResourceError):  # the client has gone
            while line := await anyio.to_thread.run_sync(stdout.readline):
                message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                await heard.send(SessionMessage(message))

    async def speak() -> None:
        async for item in spoken:
            stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            stdin.flush()

    with server:
        async with heard, coming, going, spoken, anyio.create_task_group() as group:
            group.start_soon(hear)
            group.start_soon(speak)
            yield coming, going
            coming.close()
            going.close()
            stdin.close()


def talk(conversation: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(conversation(), 60))
