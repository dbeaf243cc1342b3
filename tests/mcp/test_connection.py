"""A connection over stdio: what a client sees, and how the connection ends."""

import asyncio
import json
import os
import signal
import subprocess
import tomllib
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.places import session_root
from sampletool.kit.program import PROGRAM
from sampletool.kit.safety.processes import is_running, pids
from sampletool.kit.stepping.forked_process import ForkedProcess
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.schema import problems_of
from sampletool.kit.testing.tool import Tool, ended
from sampletool.kit.testing.waiting import wait_until
from tests.mcp.support import connected, start_server, talk

_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}
_NOISE = """
import os, sys
sys.addaudithook(lambda event, args: os.write(1, b"noise\\n") if event == "os.chdir" else None)
"""


def request(number: int, method: str, **params: Any) -> bytes:
    return (
        json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()
        + b"\n"
    )


def children_of(pid: int) -> list[int]:
    found = []
    for one in pids():
        with suppress(OSError):
            if f"PPid:\t{pid}\n" in Path(f"/proc/{one}/status").read_text():
                found.append(one)
    return found


def test_a_client_finds_tools_and_calls_them_and_nothing_printed_gets_in_between(
    tool: Tool, workspace: Path, tmp_path: Path
) -> None:
    from mcp import MCPError

    (tmp_path / "sitecustomize.py").write_text(_NOISE)
    tool.environ["PYTHONPATH"] += f":{tmp_path}"
    here = {"cwd": str(workspace)}

    async def conversation() -> None:
        async with connected(tool, "--all") as client:
            tools = {one.name: one for one in (await client.list_tools()).tools}
            assert tools.keys() >= {"config_unset", "config_get", "config_set"}
            hints = [tools[name].annotations for name in ("config_unset", "config_get")]
            set_one = await client.call_tool("config_set", {"words": ["a", "1"], **here})
            got = await client.call_tool("config_get", {"key": "a", "session_id": "s-1", **here})
            missing = await client.call_tool("config_get", {"key": "levle", **here})
            wrong = await client.call_tool("config_get", {"kye": "a"})
            with pytest.raises(MCPError, match="Did you mean 'config_get'"):
                await client.call_tool("confg_get", {})

        assert [hint.read_only_hint for hint in hints] == [None, True]
        assert [hint.destructive_hint for hint in hints] == [True, None]
        assert (set_one.is_error, set_one.structured_content["data"]["effect"]) == (
            False,
            "created",
        )
        assert json.loads(got.content[0].text) == got.structured_content
        assert got.structured_content["data"]["value"] == 1
        assert got.structured_content["meta"]["session_id"] == "s-1"
        assert missing.is_error
        assert "'level'" in missing.structured_content["error"]["suggestion"]
        assert wrong.is_error
        assert wrong.structured_content["error"]["code"] == "USAGE_ERROR"
        for answer in (set_one, got, missing, wrong):
            assert problems_of(answer.structured_content) == []

    talk(conversation)


def test_resources_and_prompts_can_be_read_and_a_call_can_be_cancelled(
    tool: Tool, workspace: Path
) -> None:
    from mcp import MCPError

    tool("config", "set", "warm", "1")
    directory = session_root() / "s-1"
    for path in (directory.parent, directory):
        path.mkdir(mode=0o700)
    (directory / "a b.json").write_text("{}")
    (directory / "bad\udcff.txt").write_text("odd")
    (directory / "link").symlink_to(workspace / "tool.toml")

    async def conversation() -> None:
        async with connected(tool, mode="legacy") as client:
            listed = {one.uri for one in (await client.list_resources()).resources}
            templates = (await client.list_resource_templates()).resource_templates
            index = await client.read_resource(f"{PROGRAM}://manifest")
            of_command = await client.read_resource(f"{PROGRAM}://manifest/config.set")
            output = await client.read_resource(f"{PROGRAM}://session/s-1/a%20b.json")
            odd = await client.read_resource(f"{PROGRAM}://session/s-1/bad%FF.txt")
            for wrong in (
                "session/s-1/link",
                "session/../x",
                "session/s-1/no",
                "no",
                "manifest/no",
            ):
                with suppress(MCPError):
                    assert (await client.read_resource(f"{PROGRAM}://{wrong}")) is None
            prompt = (await client.list_prompts()).prompts[0]
            said = await client.get_prompt(prompt.name, {"task": "count {sheep}"})
            with pytest.raises(MCPError, match="argument task"):
                await client.get_prompt(prompt.name, {})
            await cancelled(
                client.call_tool("config_set", {"words": ["a=1"], "lock_timeout": "60s"})
            )
            other = await client.call_tool("config_get", {"key": "level"})

        files = {f"{PROGRAM}://session/s-1/{file}" for file in ("a%20b.json", "bad%FF.txt")}
        assert {f"{PROGRAM}://manifest", *files} <= listed
        assert f"{PROGRAM}://manifest/{{command}}" in {one.uri_template for one in templates}
        assert '"command":"config set"' in of_command.contents[0].text
        assert odd.contents[0].text == "odd"
        assert "config set" in index.contents[0].text
        assert output.contents[0].text == "{}"
        assert "calls in parallel where it helps: count {sheep}" in said.messages[0].content.text
        assert other.structured_content["data"]["value"] == 1

    with holding(workspace / ".tool" / "locks" / "tool.toml.lock"):
        talk(conversation)
    assert "a" not in tomllib.loads((workspace / "tool.toml").read_text())["settings"]


async def cancelled(asked: Coroutine[Any, Any, Any]) -> None:
    """Ask, cancel as soon as the call has a process, and wait until that has ended."""
    task = asyncio.create_task(asked)
    mine = children_of(os.getpid())
    (server,) = [
        pid for pid in mine if Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"\0mcp\0")
    ]
    while not children_of(server):
        await asyncio.sleep(0.01)
    task.cancel()
    while children_of(server):
        await asyncio.sleep(0.01)


def end_connection(server: ForkedProcess, how: str) -> None:
    """End a connection in one of three ways."""
    assert server.stdin is not None
    assert server.stdout is not None
    if how == "SIGTERM":
        server.terminate()
    elif how == "closed stdout":
        server.stdout.close()
    else:
        server.stdin.close()
        server.stdin = None


def exits_in_time(server: ForkedProcess, children: list[int]) -> bool:
    """Return whether a server exits within 5 s. If it does not, kill it and its children."""
    with suppress(subprocess.TimeoutExpired):
        server.wait(5)
        return True
    for pid in [*children, server.pid]:
        os.kill(pid, signal.SIGKILL)
    return False


def send(server: ForkedProcess, *lines: bytes) -> None:
    assert server.stdin is not None
    server.stdin.write(b"".join(lines))
    server.stdin.flush()


@pytest.mark.parametrize(
    ("how", "exit_code"),
    [("EOF", 0), ("closed stdout", 0), ("SIGTERM", -signal.SIGTERM)],
    ids=["EOF", "closed stdout", "SIGTERM"],
)
def test_the_end_of_stdin_or_a_signal_ends_it_and_all_its_calls(
    tool: Tool,
    workspace: Path,
    how: str,
    exit_code: int,
) -> None:
    """The calls wait for a lock. How long the end takes is tested in test_runner.py."""
    tool("config", "set", "warm", "1")
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock"):
        server = start_server(tool)
        assert server.stdout is not None
        send(server, request(1, "initialize", **_HELLO), b"no JSON\n")
        responses = [json.loads(server.stdout.readline()) for _ in range(2)]
        ask = partial(request, method="tools/call", name="config_set")
        for number in (2, 3):
            arguments = {"words": [f"a={number}"], "lock_timeout": "600s"}
            send(server, ask(number, arguments=arguments))
        wait_until(lambda: len(children_of(server.pid)) == 2)
        children = children_of(server.pid)

        end_connection(server, how)

        assert exits_in_time(server, children)
        ran = ended(server)
        wait_until(lambda: not any(map(is_running, children)))

    assert {each.get("error", {}).get("code") for each in responses} == {None, -32700}
    assert ran.status == exit_code
    assert (b'"INTERRUPTED"' in ran.stderr) is (how == "SIGTERM")
    # Python warns about coroutines that nothing has awaited.
    assert b"Warning" not in ran.stderr
    for line in ran.text.splitlines():
        assert json.loads(line)["jsonrpc"] == "2.0"
    assert "a" not in tomllib.loads((workspace / "tool.toml").read_text())["settings"]
