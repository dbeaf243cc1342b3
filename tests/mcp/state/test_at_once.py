"""Many calls over one connection, and commands in processes, all at once in one workspace."""

import asyncio
import json
from pathlib import Path
from typing import Any

from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Process, Tool, ended
from tests.mcp.support import connected_cheaply, talk

_WAIT = {"lock_timeout": "60s"}
_CALLS = scale(15, 100)
"""Three of five change something, each in a process of its own, which costs a tenth of a second.

The large number is more than the server lets run at the same time. See test_runner.py.
"""
_PROCESSES = scale(6, 20)


def calls(number: int) -> tuple[str, dict[str, Any]]:
    """One after the other, of every kind: three that change something, two that only look."""
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("config_set", {"words": [f"mcp.key{number}={number}"]}),
        ("counter_add", {"name": "done"}),
        ("task_add", {"queue": "work", "bodies": [f"mcp-{number}"]}),
        ("config_get", {"key": "level"}),
        ("task_list", {"queue": "work"}),
    ]
    name, arguments = kinds[number % len(kinds)]
    return name, arguments | _WAIT


def commands(number: int) -> list[str]:
    kinds = [
        ["config", "set", f"cli.key{number}={number}"],
        ["counter", "add", "done"],
        ["task", "add", "work", f"cli-{number}"],
    ]
    return [*kinds[number % len(kinds)], "--lock-timeout", "60s"]


def test_nothing_is_lost_between_calls_of_the_server_and_processes(
    tool: Tool, workspace: Path
) -> None:
    answers: list[dict[str, Any]] = []
    beside: list[Process] = []

    async def conversation() -> None:
        async with connected_cheaply(tool, "--all") as client:
            await client.list_tools()
            beside.extend(tool.start(*commands(number)) for number in range(_PROCESSES))
            asked = [
                client.call_tool(name, arguments) for name, arguments in map(calls, range(_CALLS))
            ]
            answers.extend(one.structured_content for one in await asyncio.gather(*asked))

    talk(conversation)
    answers += [ended(process).response for process in beside]

    assert [json.dumps(answer["error"]) for answer in answers if not answer["ok"]] == []
    assert len(answers) == _CALLS + _PROCESSES
    settings = {
        one["key"]: one["value"]
        for one in tool("config", "list", "--limit", "1000").data["settings"]
    }
    assert {
        f"mcp.key{number}": number for number in range(0, _CALLS, 5)
    }.items() <= settings.items()
    assert {
        f"cli.key{number}": number for number in range(0, _PROCESSES, 3)
    }.items() <= settings.items()
    added = len(range(1, _CALLS, 5)) + len(range(1, _PROCESSES, 3))
    assert tool("counter", "get", "done").data["value"] == added
    bodies = [
        task["body"] for task in tool("task", "list", "work", "--limit", "1000").data["tasks"]
    ]
    expected = [f"mcp-{number}" for number in range(2, _CALLS, 5)] + [
        f"cli-{n}" for n in range(2, _PROCESSES, 3)
    ]
    assert sorted(bodies) == sorted(expected)
