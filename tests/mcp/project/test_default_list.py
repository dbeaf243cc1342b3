"""The list of tools that a server of this project offers by default.

A new project does not get this test: its own commands are tools, too.
"""

from sampletool.mcp.tools import load_tools
from tests.mcp.sizes import MAX_DEFAULT_BYTES, MAX_DEFAULT_TOOLS, list_bytes


def test_the_default_list_of_tools_is_short() -> None:
    """A client puts it into the context of its model, in every conversation."""
    default = load_tools()

    assert len(default) <= MAX_DEFAULT_TOOLS
    assert list_bytes(default) < MAX_DEFAULT_BYTES
