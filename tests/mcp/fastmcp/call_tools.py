"""Use a server with the client of fastmcp, which validates each response against its schema.

Usage: `python call_tools.py URL`, or `python call_tools.py COMMAND [ARGUMENT...]`, which starts a
server. The last line of the output is JSON. This runs in the environment of `make fastmcp`, so it
cannot import anything of this project.
"""

import asyncio
import json
import os
import sys
from typing import Any

from fastmcp import Client  # type: ignore[import-not-found]
from fastmcp.client.transports import StdioTransport  # type: ignore[import-not-found]


def connect(command: list[str]) -> Any:
    """Return a client of the server at a URL, or of a server that is started."""
    if command[0].startswith("http://"):
        return Client(command[0])
    transport = StdioTransport(command=command[0], args=command[1:], env=dict(os.environ))
    return Client(transport)


async def call_tools(command: list[str]) -> dict[str, Any]:
    """Return what the server offers, and its responses to three calls. The last one fails."""
    async with connect(command) as client:
        tools = [tool.name for tool in await client.list_tools()]
        resources = [str(resource.uri) for resource in await client.list_resources()]
        added = await client.call_tool("task_add", {"queue": "work", "bodies": ["null", "text"]})
        claimed = await client.call_tool("task_claim", {"queue": "work", "count": 2})
        failed = await client.call_tool("config_get", {"key": "no"}, raise_on_error=False)
    return {
        "tools": tools,
        "resources": resources,
        "added": added.structured_content,
        "claimed": claimed.structured_content,
        "failed": failed.structured_content,
        "is_error": [added.is_error, claimed.is_error, failed.is_error],
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(call_tools(sys.argv[1:]))))
