"""Every kind of JSON value goes into the store and back, and each response fits its schema.

A stored null was dropped from responses, although the schema requires the member. The official
clients then refused the response of a claim that had been made, so one such task blocked its queue.
"""

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]

from sampletool.kit.testing.tool import Tool
from tests.mcp.support import connected_cheaply, talk

VALUES: list[Any] = [
    None,
    True,
    False,
    0,
    -1.5,
    "",
    "null",
    "two words",
    [],
    [None],
    [1, [2, {"a": None}]],
    {},
    {"a": None},
    {"value": {"body": None}},
]


def test_every_json_value_comes_back_on_the_command_line(tool: Tool) -> None:
    """`Ran.data` validates each response with `jsonschema`."""
    texts = [json.dumps(value) for value in VALUES]

    tool("task", "add", "work", "--", *texts)
    listed = tool("task", "list", "work").data["tasks"]
    claimed = tool("task", "claim", "work", "--count", "100").data["tasks"]
    shown = []
    for task in claimed:
        shown.append(tool("task", "show", task["id"]).data["task"])
    read = []
    for text in texts:
        tool("state", "set", "key", "--", text)
        read.append(tool("state", "get", "key").data)
        assert tool("state", "list").data["values"] == read[-1:]

    for tasks in (listed, claimed, shown):
        assert [task["body"] for task in tasks] == VALUES
    assert [found["value"] for found in read] == VALUES


def test_every_json_value_comes_back_to_the_official_client(tool: Tool) -> None:
    """The client raises an error if a response does not fit the schema of its tool."""

    async def conversation() -> None:
        async with connected_cheaply(tool, "--all") as client:
            schemas = {each.name: each.output_schema for each in (await client.list_tools()).tools}

            async def run(name: str, **arguments: Any) -> Any:
                response = (await client.call_tool(name, arguments)).structured_content
                jsonschema.validate(response, schemas[name])
                assert response["ok"], response
                return response["data"]

            bodies = [json.dumps(value) for value in VALUES]
            await run("task_add", queue="work", bodies=bodies)
            listed = (await run("task_list", queue="work"))["tasks"]
            claimed = (await run("task_claim", queue="work", count=100))["tasks"]
            for value, task in zip(VALUES, claimed, strict=True):
                shown = await run("task_show", task=task["id"])
                assert shown["task"]["body"] == value
            assert [task["body"] for task in listed] == VALUES
            assert [task["body"] for task in claimed] == VALUES
            for value in VALUES:
                await run("state_set", key="key", value=json.dumps(value))
                assert (await run("state_get", key="key"))["value"] == value
                assert (await run("state_list"))["values"][0]["value"] == value

    talk(conversation)
