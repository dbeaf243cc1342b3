"""The workspace that most tests of this part begin with."""

from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool

_TOTALS_AND_REPORT = """
[target.totals]
run = ['/bin/sh', '-c', 'wc -l < data/sales.csv > totals.json']
inputs = ["data/sales.csv"]
outputs = ["totals.json"]

[target.report]
run = ['/bin/sh', '-c', 'cp out/totals/totals.json report.txt']
needs = ["totals"]
outputs = ["report.txt"]
"""


@pytest.fixture
def totals(tool: Tool) -> Path:
    """Create a workspace with the targets of `demo`, but as shell scripts.

    Starting a shell takes 2 ms. Starting Python takes 50.
    """
    (tool.cwd / "data").mkdir()
    (tool.cwd / "data" / "sales.csv").write_text("region,units\neast,1\nwest,2\n")
    (tool.cwd / "tool.toml").write_text(_TOTALS_AND_REPORT)
    return tool.cwd


@pytest.fixture
def demo(tool: Tool) -> Path:
    """Create the workspace of `tool init`."""
    assert tool("init").status == 0
    return tool.cwd
