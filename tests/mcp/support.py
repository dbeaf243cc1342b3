"""The server as a client of the protocol has it: the SDK's own, over stdio."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Any, Literal

import pytest

from sampletool.kit.testing.tool import COMMAND, Tool

MISSING = "the extra mcp is not installed: make .venv/.testable"

if find_spec("mcp") is None:  # to import it takes 0.4 s, in each worker that collects these tests
    pytest.skip(MISSING, allow_module_level=True)


@asynccontextmanager
async def connected(tool: Tool, mode: Literal["legacy", "auto"] = "auto") -> AsyncIterator[Any]:
    """A client of a server of its own, which ends with the block; what the server says goes to a file beside."""
    from mcp import Client, StdioServerParameters, stdio_client

    server = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=tool.environ, cwd=tool.cwd)
    with (tool.cwd.parent / "stderr").open("a") as log:
        async with Client(stdio_client(server, errlog=log), mode=mode) as client:
            yield client


def talk(conversation: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(conversation(), 60))
