"""sampletool/mcp/protocol.py: which work each request causes, and the form of the replies."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

import tests.mcp.support  # noqa: F401  # It skips these tests if the SDK is not installed.
from sampletool.kit.contract.response import json_line
from sampletool.kit.program import PROGRAM, __version__
from sampletool.kit.testing.failing import failure_of, outcome_of
from sampletool.mcp.tools import Tool, load_tools
from tests.mcp.test_arguments import parameter
from tests.mcp.test_tools import described_by

_PROMPT = "run-safely-in-parallel"
_REQUESTS = (
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
)


class FakeRunner:
    """A runner that notes its commands, and reports two events about each of them."""

    def __init__(self, response: dict[str, Any] | None = None) -> None:
        self.argv: list[str] = []
        self.reads_only: bool | None = None
        self._response = response or {"ok": True, "data": {}}

    async def run(self, argv: list[str], *, reads_only: bool, report_progress: Any = None) -> bytes:
        self.argv = argv
        self.reads_only = reads_only
        if report_progress is not None:
            await report_progress({"event": "started"})
            await report_progress({"event": "finished"})
        return json_line(self._response)


class FakeSession:
    """A session of a client, which notes the progress that it gets."""

    def __init__(self) -> None:
        self.progress: list[tuple[int, None, str]] = []

    async def report_progress(self, number: int, total: None, text: str) -> None:
        self.progress.append((number, total, text))


@pytest.fixture(scope="module")
def tools() -> dict[str, Tool]:
    return load_tools()


def request(
    tools: dict[str, Tool],
    runner: FakeRunner,
    session: FakeSession,
    name: str,
    params: object,
) -> Any:
    """Return the reply to one request, or raise the error to reply with.

    Any other error than an MCPError would tell the client nothing.
    """
    # Importing the SDK takes 0.4 s, in each worker that collects these tests.
    from mcp import MCPError

    from sampletool.mcp.protocol import _Handlers

    async def respond() -> Any:
        loading: asyncio.Future[dict[str, Tool]] = asyncio.get_running_loop().create_future()
        loading.set_result(tools)
        handlers = _Handlers(runner, loading)  # type: ignore[arg-type]
        handler: Coroutine[Any, Any, Any]
        if name == "run_for_resource":
            handler = handlers._run_for_resource(params)  # type: ignore[arg-type]
        else:
            handler = getattr(handlers, name)(SimpleNamespace(session=session), params)
        return await handler

    reply = outcome_of(lambda: asyncio.run(respond()))
    if isinstance(reply, MCPError):
        raise reply
    assert not isinstance(reply, Exception), repr(reply)
    return reply


def call(tools: dict[str, Tool], runner: FakeRunner, name: str, arguments: Any) -> Any:
    params = SimpleNamespace(name=name, arguments=arguments)
    return request(tools, runner, FakeSession(), "call_tool", params)


@pytest.mark.parametrize(
    ("argv", "reads_only"),
    [
        (["manifest"], True),
        (["lab", "list"], True),
        (["lab", "run", "--", "x"], False),
    ],
)
def test_a_resource_whose_command_starts_processes_does_not_run_in_the_server(
    tools: dict[str, Tool],
    argv: list[str],
    reads_only: bool,
) -> None:
    runner = FakeRunner()

    request(tools, runner, FakeSession(), "run_for_resource", argv)

    assert (runner.argv, runner.reads_only) == (argv, reads_only)


def test_each_event_of_a_command_is_progress_with_a_number_that_grows(
    tools: dict[str, Tool],
) -> None:
    session = FakeSession()
    params = SimpleNamespace(name="build", arguments={})

    request(tools, FakeRunner(), session, "call_tool", params)

    assert session.progress == [
        (1, None, '{"event": "started"}'),
        (2, None, '{"event": "finished"}'),
    ]


def test_a_response_comes_as_an_object_and_as_text(tools: dict[str, Tool]) -> None:
    runner = FakeRunner({"ok": True, "data": {"a": 1}})

    reply = call(tools, runner, "status", None)

    assert reply.model_dump(exclude_none=True, exclude={"result_type"}) == {
        "content": [{"type": "text", "text": '{"ok":true,"data":{"a":1}}'}],
        "structured_content": {"ok": True, "data": {"a": 1}},
        "is_error": False,
    }


def test_a_response_that_is_not_ok_is_an_error(tools: dict[str, Tool]) -> None:
    error = {"message": "m", "suggestion": "s"}

    reply = call(tools, FakeRunner({"ok": False, "error": error}), "status", {})

    assert reply.structured_content == {"ok": False, "error": error}
    assert reply.is_error is True


@pytest.mark.parametrize(("name", "reads_only"), [("config_get", True), ("config_set", False)])
def test_a_tool_gets_its_arguments_and_runs_in_a_process_if_it_changes_something(
    tools: dict[str, Tool],
    name: str,
    reads_only: bool,
) -> None:
    runner = FakeRunner()
    examples: dict[str, dict[str, Any]] = {
        "config_get": {"key": "a"},
        "config_set": {"words": ["a=1"]},
    }

    call(tools, runner, name, examples[name])

    assert runner.argv == tools[name].command_line(examples[name])
    assert runner.reads_only is reads_only


def test_wrong_arguments_are_a_response_of_the_command_and_nothing_runs(
    tools: dict[str, Tool],
) -> None:
    runner = FakeRunner()

    reply = call(tools, runner, "config_set", {"wrods": []})

    assert reply.structured_content["error"]["code"] == "USAGE_ERROR"
    assert reply.structured_content["meta"]["command"] == "config.set"
    assert runner.argv == []


def test_an_unknown_tool_is_refused_with_the_name_that_was_meant_and_how_to_get_more(
    tools: dict[str, Tool],
) -> None:
    from mcp import MCPError, types

    with pytest.raises(MCPError) as refused:
        call(tools, FakeRunner(), "statsu", {})
    with pytest.raises(MCPError) as strange:
        call(tools, FakeRunner(), "zzzzzzzz", {})

    more = "A server that was started with `tool mcp --all` offers all commands."
    start = "There is no tool 'statsu'. Did you mean 'status'"
    assert refused.value.error.code == types.INVALID_PARAMS
    assert refused.value.error.message.startswith(start)
    assert refused.value.error.message.endswith(more)
    assert strange.value.error.message == f"There is no tool 'zzzzzzzz'. {more}"


def test_a_request_that_is_cancelled_while_the_tools_are_loaded_does_not_cancel_the_loading(
    tools: dict[str, Tool],
) -> None:
    from sampletool.mcp.protocol import _Handlers

    async def cancel_first_request() -> int:
        loading: asyncio.Future[dict[str, Tool]] = asyncio.get_running_loop().create_future()
        handlers = _Handlers(FakeRunner(), loading)  # type: ignore[arg-type]
        first = asyncio.create_task(handlers.list_tools(None, None))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        assert not loading.cancelled()
        loading.set_result(tools)
        return len((await handlers.list_tools(None, None)).tools)  # type: ignore[arg-type]

    assert asyncio.run(cancel_first_request()) == len(tools)


def test_a_prompt_has_a_description_and_the_task_in_its_text(tools: dict[str, Tool]) -> None:
    listed = request(tools, FakeRunner(), FakeSession(), "list_prompts", None).prompts
    assert [each.name for each in listed] == [_PROMPT]
    params = SimpleNamespace(name=_PROMPT, arguments={"task": "count {sheep}"})
    prompt = request(tools, FakeRunner(), FakeSession(), "get_prompt", params)

    assert [(argument.name, argument.required) for argument in listed[0].arguments] == [
        ("task", True)
    ]
    assert prompt.description == listed[0].description
    assert "\n" not in prompt.description
    text = prompt.messages[0].content.text
    assert "count {sheep}" in text
    assert not text.startswith(prompt.description)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("no", {"task": "x"}), (_PROMPT, {}), (_PROMPT, None)],
)
def test_a_prompt_that_does_not_exist_or_lacks_its_task_is_refused_with_the_names(
    name: str,
    arguments: object,
) -> None:
    params = SimpleNamespace(name=name, arguments=arguments)

    refused = failure_of(lambda: request({}, FakeRunner(), FakeSession(), "get_prompt", params))

    expected = "The prompts are: run-safely-in-parallel. Each has the argument task."
    assert str(refused) == expected, repr(refused)


def test_each_request_that_a_client_may_send_has_a_handler() -> None:
    from sampletool.mcp.protocol import create_protocol

    async def find_missing() -> list[str]:
        loading: asyncio.Future[dict[str, Tool]] = asyncio.get_running_loop().create_future()
        protocol = create_protocol(FakeRunner(), loading)  # type: ignore[arg-type]
        return [method for method in _REQUESTS if protocol.get_request_handler(method) is None]

    assert asyncio.run(find_missing()) == []


class LabRunner(FakeRunner):
    """A runner whose commands are those of a lab with one race."""

    async def run(self, argv: list[str], *, reads_only: bool, report_progress: Any = None) -> bytes:
        if argv == ["lab", "list"]:
            races = [{"name": "lost-update", "title": "A lost update"}]
            return json_line({"ok": True, "data": {"scenarios": races}})
        return await super().run(argv, reads_only=reads_only, report_progress=report_progress)


def converse(tools: dict[str, Tool], conversation: Callable[[Any], Awaitable[Any]]) -> Any:
    """Return the result of a conversation between a client and the protocol, in this process."""
    from mcp import Client

    from sampletool.mcp.protocol import create_protocol

    async def connect() -> Any:
        loading: asyncio.Future[dict[str, Tool]] = asyncio.get_running_loop().create_future()
        loading.set_result(tools)
        runner: Any = LabRunner()
        async with Client(create_protocol(runner, loading)) as client:
            return await conversation(client)

    return asyncio.run(connect())


def shown(items: Sequence[Any]) -> list[Any]:
    """Return what a client sees of these items."""
    return [item.model_dump(mode="json", exclude_none=True) for item in items]


def test_a_client_gets_the_name_the_texts_the_schemas_and_the_hints_of_each_tool() -> None:
    tool = described_by([parameter("order", schema={"type": "string"})], idempotent=True)

    listed = request({"order_cancel": tool}, FakeRunner(), FakeSession(), "list_tools", None)

    assert shown(listed.tools) == [
        {
            "name": "order_cancel",
            "description": "Cancel an order.",
            "input_schema": tool.input_schema(),
            "output_schema": tool.output_schema(),
            "annotations": {
                "destructive_hint": False,
                "idempotent_hint": True,
                "open_world_hint": False,
            },
        }
    ]


def test_a_client_gets_the_address_the_name_and_the_description_of_each_resource() -> None:
    resources, templates = (
        request({}, LabRunner(), FakeSession(), name, None)
        for name in ("list_resources", "list_resource_templates")
    )

    assert shown(resources.resources) == [
        {
            "uri": f"{PROGRAM}://manifest",
            "name": "manifest",
            "description": "All commands, one per line.",
        },
        {
            "uri": f"{PROGRAM}://manifest/schema",
            "name": "schema",
            "description": (
                "What all commands share: options, errors, and the form of a response."
            ),
        },
        {
            "uri": f"{PROGRAM}://lab/lost-update",
            "name": "lost-update",
            "description": "A lost update",
        },
    ]
    assert shown(templates.resource_templates) == [
        {
            "uri_template": f"{PROGRAM}://manifest/{{command}}",
            "name": "command",
            "description": (
                "The manifest of a command, such as config.set: its errors and its schema."
            ),
        },
        {
            "uri_template": f"{PROGRAM}://session/{{session_id}}/{{file}}",
            "name": "output",
            "description": "An output file of a session.",
        },
        {
            "uri_template": f"{PROGRAM}://lab/{{race}}",
            "name": "race",
            "description": "A race condition, step by step.",
        },
    ]


def test_a_client_can_read_a_resource_and_learns_if_there_is_none() -> None:
    from mcp import MCPError, types

    async def conversation(client: Any) -> Any:
        read = await client.read_resource(f"{PROGRAM}://manifest")
        with pytest.raises(MCPError) as refused:
            await client.read_resource(f"{PROGRAM}://no")
        return read.contents, refused.value.error

    contents, error = converse({}, conversation)

    assert shown(contents) == [
        {"uri": f"{PROGRAM}://manifest", "text": '{"ok":true,"data":{}}\n'},
    ]
    assert (error.code, error.message) == (
        types.INVALID_PARAMS,
        f"There is no resource '{PROGRAM}://no'.",
    )


def test_a_client_can_call_a_tool(tools: dict[str, Tool]) -> None:
    async def conversation(client: Any) -> Any:
        listed = (await client.list_tools()).tools
        return listed, await client.call_tool("status", {})

    listed, called = converse(tools, conversation)

    assert [tool.name for tool in listed] == list(tools)
    assert called.structured_content == {"ok": True, "data": {}}


def test_a_client_can_list_the_prompts_and_get_one_with_its_task() -> None:
    params = SimpleNamespace(name=_PROMPT, arguments={"task": "count {sheep}"})
    listed = request({}, FakeRunner(), FakeSession(), "list_prompts", None)
    prompt = request({}, FakeRunner(), FakeSession(), "get_prompt", params)

    assert shown(listed.prompts) == [
        {
            "name": _PROMPT,
            "description": prompt.description,
            "arguments": [{"name": "task", "description": "What to do.", "required": True}],
        }
    ]
    assert [message.role for message in prompt.messages] == ["user"]
    assert "count {sheep}" in prompt.messages[0].content.text


def test_a_client_learns_the_name_the_version_and_the_instructions_of_the_server() -> None:
    async def conversation(client: Any) -> Any:
        return client.server_info, client.instructions, client.server_capabilities

    info, instructions, capabilities = converse({}, conversation)

    assert (info.name, info.version) == (PROGRAM, __version__)
    assert PROGRAM in instructions
    assert capabilities.model_fields_set >= {"tools", "resources", "prompts"}
