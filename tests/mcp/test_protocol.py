"""sampletool/mcp/protocol.py: which work each request causes, and the form of the replies."""

import asyncio
import json
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any

import pytest

import tests.mcp.support  # noqa: F401  # It skips these tests if the SDK is not installed.
from sampletool.kit.contract.response import json_line
from sampletool.mcp.tools import Tool, load_tools


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
    """Return the reply to one request."""
    # Importing the SDK takes 0.4 s, in each worker that collects these tests.
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

    return asyncio.run(respond())


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

    assert [(number, total) for number, total, _text in session.progress] == [(1, None), (2, None)]
    assert [json.loads(text)["event"] for _number, _total, text in session.progress] == [
        "started",
        "finished",
    ]


def test_a_response_comes_as_an_object_and_as_text(tools: dict[str, Tool]) -> None:
    reply = call(tools, FakeRunner({"ok": True, "data": {"a": 1}}), "status", None)

    assert reply.structured_content == {"ok": True, "data": {"a": 1}}
    assert reply.content[0].text == '{"ok":true,"data":{"a":1}}'
    assert reply.is_error is False


def test_a_response_that_is_not_ok_is_an_error(tools: dict[str, Tool]) -> None:
    error = {"message": "m", "suggestion": "s"}

    reply = call(tools, FakeRunner({"ok": False, "error": error}), "status", {})

    assert reply.is_error is True


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
    from mcp import MCPError

    listed = request(tools, FakeRunner(), FakeSession(), "list_prompts", None).prompts
    params = SimpleNamespace(name=listed[0].name, arguments={"task": "count {sheep}"})
    prompt = request(tools, FakeRunner(), FakeSession(), "get_prompt", params)

    assert [(argument.name, argument.required) for argument in listed[0].arguments] == [
        ("task", True)
    ]
    assert prompt.description == listed[0].description
    assert "\n" not in prompt.description
    text = prompt.messages[0].content.text
    assert "count {sheep}" in text
    assert not text.startswith(prompt.description)
    wrong: list[tuple[str, object]] = [("no", {"task": "x"}), (listed[0].name, None)]
    for name, arguments in wrong:
        params = SimpleNamespace(name=name, arguments=arguments)
        with pytest.raises(MCPError, match="argument task"):
            request(tools, FakeRunner(), FakeSession(), "get_prompt", params)


def test_a_client_learns_that_there_are_tools_resources_and_prompts() -> None:
    from sampletool.kit.program import __version__
    from sampletool.mcp.protocol import create_protocol

    async def introduce() -> Any:
        loading: asyncio.Future[dict[str, Tool]] = asyncio.get_running_loop().create_future()
        protocol = create_protocol(FakeRunner(), loading)  # type: ignore[arg-type]
        return protocol.create_initialization_options()

    options = asyncio.run(introduce())

    assert (options.server_name, options.server_version) == ("tool", __version__)
    assert "tool" in options.instructions
    assert options.capabilities.tools is not None
    assert options.capabilities.resources is not None
    assert options.capabilities.prompts is not None
