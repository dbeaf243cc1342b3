"""Two agents do the same day's work in one workspace at the same time, and are killed meanwhile.

One knows only the manifest and runs commands. The other one knows only MCP. Each validates every
response against the schema that it was given. So both ways are complete, and neither disturbs the
other one.
"""

import asyncio
import json
import os
import random
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import jsonschema  # type: ignore[import-untyped]

from sampletool.kit.program import PACKAGE
from sampletool.kit.testing.forked import start_python
from sampletool.kit.testing.tool import Tool
from tests.mcp.support import start_server, streams_of, talk

Arguments = dict[str, Any]
"""The arguments of a tool. `words` are arguments of the command, all others are its options."""

TASKS = 3
_BYTES_PER_TOKEN = 4
_LONGEST_LIFE_SECONDS = 0.02
"""A command that is killed gets at most so much time. Some have finished by then."""

MAX_TOKENS = {"manifest": 9_000, "mcp": 9_000}
"""How many tokens an agent reads: the descriptions of what it uses, and all responses."""


class Agent(Protocol):
    """An agent that can run commands."""

    name: str

    async def run(self, command: str, arguments: Arguments) -> dict[str, Any]:
        """Run a command until there is a response. Return the data."""
        ...


async def do_the_work(agent: Agent, rows: Path) -> None:
    """Change a setting, build, process a table, and do some tasks."""
    name = agent.name
    await agent.run("config set", {"words": [f"{name}.level=7"], "lock_timeout": "60s"})
    found = await agent.run("config get", {"key": f"{name}.level"})
    assert found["value"] == 7
    await agent.run("build", {"lock_timeout": "60s"})
    processed = await agent.run("process", {"input": str(rows), "session_id": f"{name}-s"})
    assert Path(processed["output"]).exists()

    bodies = [f"{name} {number}" for number in range(TASKS)]
    await agent.run(
        "task add",
        {"queue": name, "bodies": bodies, "idempotency_key": f"{name}-add"},
    )
    for number in range(TASKS):
        once = f"{name}-claim-{number}"
        claim = await agent.run("task claim", {"queue": name, "idempotency_key": once})
        task = claim["tasks"][0]
        result = {"result": task["body"].upper(), "claim": f"{task['id']}:{task['generation']}"}
        await agent.run("task finish", result)
        shown = await agent.run("task show", {"task": task["id"]})
        assert shown["result"] == task["body"].upper()


@dataclass
class ManifestAgent:
    """An agent that knows only the manifest. Every third of its commands is killed."""

    tool: Tool
    cwd: Path
    name: str = "cli"
    read_bytes: int = 0
    killed: int = 0
    _started: int = 0
    _manifests: dict[str, dict[str, Any]] = field(default_factory=dict)

    async def run(self, command: str, arguments: Arguments) -> dict[str, Any]:
        """Run a command with the options and arguments of its manifest."""
        if command not in self._manifests:
            line = await self._start("manifest", *command.split())
            self._manifests[command] = json.loads(line)["data"]["commands"][0]
        manifest = self._manifests[command]
        words = _command_line(manifest, arguments)
        while True:
            self._started += 1
            is_killed = self._started % 3 == 0
            line = await self._start(*words, is_killed=is_killed)
            if line:
                break
            self.killed += 1
        response = json.loads(line)
        assert response["ok"], response
        jsonschema.validate(response["data"], manifest["data"])
        data: dict[str, Any] = response["data"]
        return data

    async def _start(self, *words: str, is_killed: bool = False) -> bytes:
        process = start_python(
            *("-m", PACKAGE, "--json"),
            *words,
            env=self.tool.environ,
            cwd=self.cwd,
            stderr=subprocess.DEVNULL,
        )
        if is_killed:
            # At some moment of its start or of its work: the machine decides.
            await asyncio.sleep(random.uniform(0, _LONGEST_LIFE_SECONDS))
            process.kill()
        line, _ = await asyncio.to_thread(process.communicate)
        self.read_bytes += len(line)
        return line


def _command_line(manifest: dict[str, Any], arguments: Arguments) -> list[str]:
    """Return the command line for these arguments, as the manifest describes it."""
    flags = {}
    for option in manifest["options"]:
        for flag in option["flags"]:
            flags[flag.lstrip("-").replace("-", "_")] = option["flags"][0]
    flags |= {name: f"--{name.replace('_', '-')}" for name in ("lock_timeout", "session_id")}
    words = manifest["command"].split()
    operands: list[str] = []
    for name, value in arguments.items():
        if name in flags:
            words.append(f"{flags[name]}={value}")
        else:
            operands += value if isinstance(value, list) else [value]
    return [*words, "--", *operands]


@dataclass
class McpAgent:
    """An agent that knows only MCP. Its server is killed once, in the middle of its work."""

    tool: Tool
    cwd: Path
    name: str = "mcp"
    read_bytes: int = 0
    killed: int = 0
    _calls: int = 0
    _client: Any = None
    _schemas: dict[str, Any] = field(default_factory=dict)

    async def work(self, rows: Path) -> None:
        """Do the work. After the server was killed, connect to a new one and start again."""
        while True:
            try:
                async with self._connected():
                    await do_the_work(self, rows)
                return
            except* _ServerKilled:
                self.killed += 1

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[None]:
        from mcp import Client

        self.server = start_server(self.tool)
        async with Client(streams_of(self.server)) as client:
            self._client = client
            listed = await client.list_tools()
            if not self._schemas:
                self.read_bytes += len(listed.model_dump_json(by_alias=True, exclude_none=True))
            self._schemas = {each.name: each.output_schema for each in listed.tools}
            yield

    async def run(self, command: str, arguments: Arguments) -> dict[str, Any]:
        """Call the tool of a command."""
        self._calls += 1
        if self._calls == 6:
            os.kill(self.server.pid, signal.SIGKILL)
            raise _ServerKilled
        name = command.replace(" ", "_")
        response = await self._client.call_tool(name, {**arguments, "cwd": str(self.cwd)})
        content: dict[str, Any] = response.structured_content
        self.read_bytes += len(json.dumps(content))
        assert content["ok"], content
        jsonschema.validate(content, self._schemas[name])
        data: dict[str, Any] = content["data"]
        return data


class _ServerKilled(Exception):
    """The test has killed the server of an agent."""


def test_an_agent_with_the_manifest_and_one_with_mcp_do_the_same_work_at_once(tool: Tool) -> None:
    tool("init", "demo")
    demo = tool.cwd / "demo"
    rows = tool.cwd / "rows.csv"
    rows.write_text("name,count\nann,1\nbob,2\n")
    by_manifest = ManifestAgent(tool, demo)
    by_mcp = McpAgent(tool, demo)

    async def both() -> None:
        await asyncio.gather(do_the_work(by_manifest, rows), by_mcp.work(rows))

    talk(both, seconds=280)

    assert by_manifest.killed > 0
    assert by_mcp.killed == 1
    settings = tool("config", "list", "-C", demo).data["settings"]
    levels = {each["key"]: each["value"] for each in settings if each["key"].endswith(".level")}
    assert levels == {"cli.level": 7, "mcp.level": 7}
    for queue in ("cli", "mcp"):
        tasks = tool("task", "list", queue, "-C", demo).data["tasks"]
        assert [task["status"] for task in tasks] == ["done"] * TASKS
        assert [task["body"] for task in tasks] == [f"{queue} {n}" for n in range(TASKS)]
    assert by_manifest.read_bytes / _BYTES_PER_TOKEN < MAX_TOKENS["manifest"]
    assert by_mcp.read_bytes / _BYTES_PER_TOKEN < MAX_TOKENS["mcp"]
    print(f"manifest: {by_manifest.read_bytes} bytes, mcp: {by_mcp.read_bytes} bytes")
