"""docs/mcp/state/three_agents.py: its check finds each lost change. A large run loses none."""

import asyncio
from pathlib import Path

import pytest

from sampletool.kit.testing.scale import SOAK
from sampletool.kit.testing.tool import Tool
from tests.mcp.support import MISSING


def test_what_was_acknowledged_and_is_not_there_is_found(
    tool: Tool, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp", reason=MISSING)
    from docs.mcp.state.three_agents import Agent, find_faults, main

    monkeypatch.chdir(workspace)
    tool("config", "set", "ann.key0=0")
    agent = Agent("ann", 2)
    agent.acknowledged = agent.left[:5]

    assert asyncio.run(find_faults([agent])) == [
        "the task ann-0 is there 0 times",
        "ann.key1 is None",
        "the counter is 0, and 2 additions were acknowledged",
    ]
    if SOAK:
        assert asyncio.run(main(34)) == 0
