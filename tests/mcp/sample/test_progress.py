"""A call that runs jobs, over a connection."""

import json
from pathlib import Path

from sampletool.kit.testing.tool import Tool
from tests.mcp.support import connected_cheaply, talk


def test_each_job_that_begins_and_ends_is_reported_while_the_call_runs(tool: Tool) -> None:
    tool("init", "demo")
    heard: list[tuple[float, str]] = []

    async def hear(progress: float, _total: float | None, message: str | None) -> None:
        heard.append((progress, message or ""))

    async def conversation() -> None:
        async with connected_cheaply(tool) as client:
            built = await client.call_tool("build", {"cwd": "demo"}, progress_callback=hear)
        assert built.structured_content["ok"]
        assert Path(tool.cwd, "demo", "out").is_dir()

    talk(conversation)

    events = [json.loads(message)["event"] for _, message in heard]
    assert {"target_started", "target_done"} <= set(events)
    assert [number for number, _ in heard] == [*range(1, len(heard) + 1)]
