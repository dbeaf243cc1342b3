"""The protocol: tools, resources and prompts over two descriptors. The only file that imports the SDK (0.4 s).

The transport is our own: that of the SDK reads stdin in a thread which only its client can end, so a signal would wait
for the client. Here the end of stdin, a stdout that nobody reads, or a signal ends the connection, and stops the calls.
"""

import asyncio
import json
import select
from contextlib import suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from mcp import MCPError, types
from mcp.server import Server as Protocol
from mcp.server import ServerRequestContext
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage

from ..kit.app import error_response
from ..kit.contract.errors import ToolError, did_you_mean
from ..kit.contract.manifest import envelope_schema
from ..kit.program import PROGRAM, __version__
from ..kit.safety.atomic_file import write_all
from .calls import Calls, in_thread
from .resources import listed, read
from .tools import Tool, load_tools

Context = ServerRequestContext[Any, Any]
_FOLDER = Path(__file__).parent
_PROMPTS = {path.stem: path for path in sorted((_FOLDER / "prompts").glob("*.md"))}
_PARSE_ERROR = types.ErrorData(code=types.PARSE_ERROR, message="That line is no message of JSON-RPC 2.0.")
_NOT_UNDERSTOOD = types.JSONRPCError(jsonrpc="2.0", id=None, error=_PARSE_ERROR)
_LONGEST_LINE = 16 * 1024 * 1024
_FLUSH_SECONDS = 0.1


async def serve(stdin: int, stdout: int, woken: int) -> int:
    """Until stdin ends, stdout is closed, or `woken` is readable. How many calls were made."""
    loop, over, calls = asyncio.get_running_loop(), asyncio.Event(), Calls()
    protocol = _protocol(calls, asyncio.ensure_future(in_thread(load_tools)))
    async with create_client_server_memory_streams() as ((outgoing, incoming), (requests, answers)):
        reading = asyncio.ensure_future(in_thread(partial(_read, stdin, incoming, answers, loop)))
        writing = asyncio.ensure_future(_write(stdout, outgoing))
        stdout_end = select.poll()
        stdout_end.register(stdout, 0)
        serving = asyncio.ensure_future(protocol.run(requests, answers, protocol.create_initialization_options()))
        # In a thread: an event loop cannot watch a file, and would take what a socket receives for its end.
        for task in (reading, writing, serving, asyncio.ensure_future(in_thread(stdout_end.poll))):
            task.add_done_callback(lambda _: over.set())
        loop.add_reader(woken, over.set)
        await over.wait()
        loop.remove_reader(woken)
        await incoming.aclose()
        await calls.end()
        await asyncio.wait([serving, writing], timeout=_FLUSH_SECONDS)
    return calls.made


def _read(stdin: int, incoming: Any, answers: Any, loop: asyncio.AbstractEventLoop) -> None:
    """In a thread: no other way can read a pipe, a terminal and a file."""
    with open(stdin, "rb", closefd=False) as lines:
        while line := lines.readline(_LONGEST_LINE):
            rest = line
            while len(rest) == _LONGEST_LINE and not rest.endswith(b"\n"):  # the rest of a line is no message
                line, rest = b"", lines.readline(_LONGEST_LINE)
            to: Any = answers
            message: types.JSONRPCMessage = _NOT_UNDERSTOOD
            with suppress(ValueError):
                to, message = incoming, types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            asyncio.run_coroutine_threadsafe(to.send(SessionMessage(message)), loop).result()


async def _write(stdout: int, outgoing: Any) -> None:
    """In a thread: a client that does not read must not keep us from ending. Ends where nobody can read."""
    with suppress(OSError):
        async for item in outgoing:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await in_thread(partial(write_all, stdout, f"{line}\n".encode()))


def _protocol(calls: Calls, loading: asyncio.Future[dict[str, Tool]]) -> Protocol[Any]:
    """What is asked before the tools are loaded waits for them."""

    async def list_tools(_: Context, __: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(tool) for tool in (await asyncio.shield(loading)).values()])

    async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        tools, number = await asyncio.shield(loading), count(1)
        if (tool := tools.get(params.name)) is None:
            raise _unknown(f"There is no tool {params.name!r}. {did_you_mean(params.name, [*tools])}")

        async def tell(event: dict[str, Any]) -> None:
            await context.session.report_progress(next(number), None, json.dumps(event))

        try:
            line = await calls.make(tool.command_line(params.arguments or {}), tool.reads_only, tell)
        except ToolError as error:
            line = error_response(error, tool.described["command"])
        answer = json.loads(line)
        text = types.TextContent(type="text", text=line.decode().rstrip("\n"))
        return types.CallToolResult(content=[text], structured_content=answer, is_error=not answer["ok"])

    async def list_resources(_: Context, __: Any) -> types.ListResourcesResult:
        found = [types.Resource(uri=uri, name=name, description=about) for uri, name, about in await listed(calls.make)]
        return types.ListResourcesResult(resources=found)

    async def read_resource(_: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        if (text := await read(calls.make, params.uri)) is None:
            raise _unknown(f"There is no resource {params.uri!r}.")
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=params.uri, text=text)])

    async def list_prompts(_: Context, __: Any) -> types.ListPromptsResult:
        task = types.PromptArgument(name="task", description="What is to be done.", required=True)
        found = {name: path.read_text().partition("\n")[0] for name, path in _PROMPTS.items()}
        prompts = [types.Prompt(name=name, description=about, arguments=[task]) for name, about in found.items()]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(_: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        if params.name not in _PROMPTS or "task" not in (params.arguments or {}):
            raise _unknown(f"There is {', '.join(_PROMPTS)}, with the argument task.")
        about, text = _PROMPTS[params.name].read_text().split("\n\n", 1)
        said = types.TextContent(type="text", text=text.replace("{task}", (params.arguments or {})["task"]))
        return types.GetPromptResult(description=about, messages=[types.PromptMessage(role="user", content=said)])

    return Protocol(
        PROGRAM,
        version=__version__,
        instructions=(_FOLDER / "instructions.md").read_text(),
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )


def _described(tool: Tool) -> types.Tool:
    described = tool.described
    destroys = f" Destroys: {described['destroys']}" if described["destroys"] else ""
    return types.Tool(
        name=tool.name,
        title=f"{PROGRAM} {described['command']}",
        description=f"{described['summary']} {described['help']}{destroys}",
        input_schema=tool.input_schema(),
        output_schema=envelope_schema(described["data"]),
        annotations=types.ToolAnnotations(
            read_only_hint=described["effect"] == "nothing",
            destructive_hint=bool(described["destroys"]),
            idempotent_hint=described["idempotent"],
        ),
    )


def _unknown(message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=message)
