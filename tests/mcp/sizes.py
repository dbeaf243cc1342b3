"""The size of the list of tools, which every client puts into the context of its model."""

from sampletool.mcp.tools import Tool

MAX_DEFAULT_TOOLS = 20
MAX_DEFAULT_BYTES = 24_000


def list_bytes(tools: dict[str, Tool]) -> int:
    """Return the size of the response to `tools/list`, as JSON."""
    # Importing the SDK takes 0.4 s, in each worker that collects tests.
    from sampletool.mcp.protocol import describe_tools

    listed = describe_tools(tools)
    return len(listed.model_dump_json(by_alias=True, exclude_none=True).encode())
