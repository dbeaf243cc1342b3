"""A server with the tools, resources and prompts that the conformance suite of MCP asks for.

It has the transport of `tool mcp --http`. So the suite also tests what the tool itself has no
command for, such as pictures and progress. `python -m tests.mcp.conformance_server` prints its URL.
"""

import asyncio
import base64
import json
import re
from collections.abc import Callable
from typing import Any

from mcp import MCPError, types
from mcp.server import Server as Protocol

from sampletool.kit.safety.signals import Signals
from sampletool.mcp.http_address import HttpAddress, check_access
from sampletool.mcp.http_server import PATH, listen, serve_protocol

_PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
        "0000000c4944415408d763f8cfc000000301010018dd8db00000000049454e44ae426082"
    )
).decode()
_WAV = base64.b64encode(
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0@\x1f\0\0\x80>\0\0\2\0\x10\0data\0\0\0\0"
)
_SECONDS_BETWEEN_REPORTS = 0.05
_NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}}
_JSON_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"type": "object", "properties": {"street": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "additionalProperties": False,
}


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _image() -> types.ImageContent:
    return types.ImageContent(type="image", data=_PNG, mime_type="image/png")


def _resource(uri: str, mime_type: str, text: str) -> types.EmbeddedResource:
    contents = types.TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return types.EmbeddedResource(type="resource", resource=contents)


_TOOLS: dict[str, Callable[[], list[Any]]] = {
    "test_simple_text": lambda: [_text("This is a simple text response for testing.")],
    "test_image_content": lambda: [_image()],
    "test_audio_content": lambda: [
        types.AudioContent(type="audio", data=_WAV.decode(), mime_type="audio/wav")
    ],
    "test_embedded_resource": lambda: [
        _resource("test://embedded-resource", "text/plain", "This is an embedded resource content.")
    ],
    "test_multiple_content_types": lambda: [
        _text("Multiple content types test:"),
        _image(),
        _resource(
            "test://mixed-content-resource",
            "application/json",
            json.dumps({"test": "data", "value": 123}),
        ),
    ],
    "test_error_handling": lambda: [_text("This tool intentionally returns an error for testing")],
    "test_tool_with_progress": lambda: [_text("Done.")],
    "json_schema_2020_12_tool": lambda: [_text("Done.")],
}

_PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
}


async def _list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
    tools = []
    for name in _TOOLS:
        schema = _JSON_SCHEMA if name == "json_schema_2020_12_tool" else _NO_ARGUMENTS
        tools.append(types.Tool(name=name, description="For the suite.", input_schema=schema))
    return types.ListToolsResult(tools=tools)


async def _call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
    if params.name == "test_tool_with_progress":
        for done in (0, 50, 100):
            await context.session.report_progress(done, 100, f"{done} of 100")
            await asyncio.sleep(_SECONDS_BETWEEN_REPORTS)
    content = _TOOLS[params.name]()
    return types.CallToolResult(content=content, is_error=params.name == "test_error_handling")


async def _list_resources(_context: Any, _params: Any) -> types.ListResourcesResult:
    resource = types.Resource(uri="test://static-text", name="text", description="A text.")
    return types.ListResourcesResult(resources=[resource])


async def _list_templates(_context: Any, _params: Any) -> types.ListResourceTemplatesResult:
    template = types.ResourceTemplate(uri_template="test://template/{id}/data", name="template")
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def _read_resource(
    _context: Any,
    params: types.ReadResourceRequestParams,
) -> types.ReadResourceResult:
    uri = str(params.uri)
    contents: types.TextResourceContents | types.BlobResourceContents
    template = re.fullmatch("test://template/([^/]+)/data", uri)
    if uri == "test://static-binary":
        contents = types.BlobResourceContents(uri=uri, mime_type="image/png", blob=_PNG)
    elif template is not None:
        found = template[1]
        text = json.dumps({"id": found, "templateTest": True, "data": f"Data for ID: {found}"})
        contents = types.TextResourceContents(uri=uri, mime_type="application/json", text=text)
    elif uri == "test://static-text":
        text = "This is the content of the static text resource."
        contents = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
    else:
        raise MCPError(code=types.INVALID_PARAMS, message=f"There is no resource {uri}.")
    return types.ReadResourceResult(contents=[contents])


async def _list_prompts(_context: Any, _params: Any) -> types.ListPromptsResult:
    prompts = []
    for name, arguments in _PROMPTS.items():
        described = [
            types.PromptArgument(name=each, description="For the suite.", required=True)
            for each in arguments
        ]
        prompts.append(types.Prompt(name=name, description="For the suite.", arguments=described))
    return types.ListPromptsResult(prompts=prompts)


async def _get_prompt(_context: Any, params: types.GetPromptRequestParams) -> types.GetPromptResult:
    arguments = params.arguments or {}
    contents: list[Any]
    if params.name == "test_simple_prompt":
        contents = [_text("This is a simple prompt for testing.")]
    elif params.name == "test_prompt_with_arguments":
        first, second = arguments["arg1"], arguments["arg2"]
        contents = [_text(f"Prompt with arguments: arg1='{first}', arg2='{second}'")]
    elif params.name == "test_prompt_with_image":
        contents = [_image(), _text("Please analyze the image above.")]
    else:
        text = "Embedded resource content for testing."
        contents = [
            _resource(arguments["resourceUri"], "text/plain", text),
            _text("Please process the embedded resource above."),
        ]
    messages = [types.PromptMessage(role="user", content=content) for content in contents]
    return types.GetPromptResult(messages=messages)


async def _stop_nothing() -> None:
    """Do nothing: the tools of this server start nothing."""


def main() -> None:
    """Serve until a signal."""
    signals = Signals()
    signals.install()
    protocol: Protocol[Any] = Protocol(
        "conformance",
        version="1",
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
        on_list_resources=_list_resources,
        on_list_resource_templates=_list_templates,
        on_read_resource=_read_resource,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
    )
    address = HttpAddress("127.0.0.1", 0)
    access = check_access(address, None)
    with listen(address) as listener:
        port = listener.getsockname()[1]
        print(f"Listening on http://127.0.0.1:{port}{PATH}", flush=True)
        wake_up_descriptor = signals.wake_up_descriptor
        asyncio.run(serve_protocol(protocol, listener, access, wake_up_descriptor, _stop_nothing))


if __name__ == "__main__":
    main()
