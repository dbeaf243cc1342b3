"""The handlers of MCP requests, which both transports use: stdin and stdout, and HTTP."""

import asyncio
import json
from itertools import count
from pathlib import Path
from typing import Any

from mcp import MCPError, types
from mcp.server import Server as Protocol
from mcp.server import ServerRequestContext

from ..kit.app import error_response
from ..kit.contract.errors import ToolError, did_you_mean
from ..kit.contract.text import quoted
from ..kit.program import PROGRAM, __version__
from .resources import list_resources, list_templates, read_resource
from .runner import CommandRunner
from .tools import Tool

Context = ServerRequestContext[Any, Any]
Tools = dict[str, Tool]

_FOLDER = Path(__file__).parent
_PROMPTS = {path.stem: path for path in sorted((_FOLDER / "prompts").glob("*.md"))}
"""The file of each prompt, by the name of the prompt. Its first line is the description."""


def create_protocol(runner: CommandRunner, loading: asyncio.Future[Tools]) -> Protocol[Any]:
    """Return the object that handles all MCP requests of a server.

    The `runner` runs the commands. `loading` returns the tools as soon as they are loaded, and
    requests that need them wait until then.
    """
    handlers = _Handlers(runner, loading)
    return Protocol(
        PROGRAM,
        version=__version__,
        instructions=(_FOLDER / "instructions.md").read_text(),
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_resource_templates,
        on_read_resource=handlers.read_resource,
        on_list_prompts=handlers.list_prompts,
        on_get_prompt=handlers.get_prompt,
    )


def describe_tools(tools: Tools) -> types.ListToolsResult:
    """Return the response to the request for the list of tools."""
    descriptions = []
    for tool in tools.values():
        descriptions.append(
            types.Tool(
                name=tool.name,
                description=tool.description,
                input_schema=tool.input_schema(),
                output_schema=tool.output_schema(),
                annotations=types.ToolAnnotations.model_validate(tool.annotations),
            )
        )
    return types.ListToolsResult(tools=descriptions)


class _Handlers:
    """The handlers: one public method for each kind of request."""

    def __init__(self, runner: CommandRunner, loading: asyncio.Future[Tools]) -> None:
        self._runner = runner
        self._loading = loading

    async def _wait_for_tools(self) -> Tools:
        # Without the shield, a cancelled request would cancel the loading for all other requests.
        return await asyncio.shield(self._loading)

    async def _run_for_resource(self, argv: list[str]) -> bytes:
        """Run a command whose response is the content of a resource."""
        # `lab run` starts processes, so it must not run in the process of the server.
        reads_only = argv[:2] != ["lab", "run"]
        return await self._runner.run(argv, reads_only=reads_only)

    async def list_tools(self, _context: Context, _params: Any) -> types.ListToolsResult:
        return describe_tools(await self._wait_for_tools())

    async def call_tool(
        self,
        context: Context,
        params: types.CallToolRequestParams,
    ) -> types.CallToolResult:
        tools = await self._wait_for_tools()
        tool = tools.get(params.name)
        if tool is None:
            raise _unknown_tool(params.name, tools)
        event_numbers = count(1)

        async def report_progress(event: dict[str, Any]) -> None:
            # The second argument, the total, is None: the number of events is not known before.
            await context.session.report_progress(next(event_numbers), None, json.dumps(event))

        try:
            argv = tool.command_line(params.arguments or {})
            line = await self._runner.run(
                argv,
                reads_only=tool.reads_only,
                report_progress=report_progress,
            )
        except ToolError as error:
            line = error_response(error, tool.command)
        return _to_result(tool.translate_response(line))

    async def list_resources(self, _context: Context, _params: Any) -> types.ListResourcesResult:
        resources = []
        for resource in await list_resources(self._run_for_resource):
            resources.append(
                types.Resource(
                    uri=resource.uri,
                    name=resource.name,
                    description=resource.description,
                )
            )
        return types.ListResourcesResult(resources=resources)

    async def list_resource_templates(
        self,
        _context: Context,
        _params: Any,
    ) -> types.ListResourceTemplatesResult:
        templates = []
        for template in await list_templates(self._run_for_resource):
            templates.append(
                types.ResourceTemplate(
                    uri_template=template.uri,
                    name=template.name,
                    description=template.description,
                )
            )
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self,
        _context: Context,
        params: types.ReadResourceRequestParams,
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        text = await read_resource(self._run_for_resource, uri)
        if text is None:
            raise _invalid_params(f"There is no resource {quoted(uri)}.")
        contents = types.TextResourceContents(uri=params.uri, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(self, _context: Context, _params: Any) -> types.ListPromptsResult:
        task = types.PromptArgument(name="task", description="What to do.", required=True)
        prompts = []
        for name, path in _PROMPTS.items():
            description, _text = _read_prompt(path)
            prompts.append(types.Prompt(name=name, description=description, arguments=[task]))
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        self,
        _context: Context,
        params: types.GetPromptRequestParams,
    ) -> types.GetPromptResult:
        arguments = params.arguments or {}
        if params.name not in _PROMPTS or "task" not in arguments:
            names = ", ".join(_PROMPTS)
            raise _invalid_params(f"The prompts are: {names}. Each has the argument task.")
        description, text = _read_prompt(_PROMPTS[params.name])
        content = types.TextContent(type="text", text=text.replace("{task}", arguments["task"]))
        message = types.PromptMessage(role="user", content=content)
        return types.GetPromptResult(description=description, messages=[message])


def _to_result(line: bytes) -> types.CallToolResult:
    """Return the result of a tool call, for a response that is a line of JSON.

    The result contains the response twice: as an object, and as text for clients that only read
    text.
    """
    response = json.loads(line)
    text = types.TextContent(type="text", text=line.decode().rstrip("\n"))
    return types.CallToolResult(
        content=[text],
        structured_content=response,
        is_error=not response["ok"],
    )


def _read_prompt(path: Path) -> tuple[str, str]:
    """Return the description of a prompt, which is the first line of its file, and its text."""
    description, text = path.read_text().split("\n\n", 1)
    return description, text


def _unknown_tool(name: str, tools: Tools) -> MCPError:
    sentences = [f"There is no tool {quoted(name)}."]
    hint = did_you_mean(name, list(tools))
    if hint:
        sentences.append(hint)
    sentences.append(f"A server that was started with `{PROGRAM} mcp --all` offers all commands.")
    return _invalid_params(" ".join(sentences))


def _invalid_params(message: str) -> MCPError:
    return MCPError(code=types.INVALID_PARAMS, message=message)
