"""The workspace that most tests of this part begin with."""

from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool


@pytest.fixture
def demo(tool: Tool) -> Path:
    """What `tool init` makes."""
    assert tool("init").status == 0
    return tool.cwd
