"""The server with clients that others wrote, and with the public conformance suite."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.program import PROGRAM
from sampletool.kit.testing.tool import COMMAND, Tool
from tests.mcp.node_programs import MODULES, NODE, needs_node, node_environment
from tests.mcp.state.test_json_values import VALUES

_SUITE = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
_INSPECTOR = MODULES / "@modelcontextprotocol" / "inspector"
_TESTS = Path(__file__).parents[1]
_FASTMCP = _TESTS.parents[1] / ".venv" / "fastmcp" / "bin" / "python"

needs_fastmcp = pytest.mark.skipif(
    not _FASTMCP.exists(),
    reason="fastmcp is not installed: make fastmcp",
)

MUST_PASS = {
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "dns-rebinding-protection",
}
_SERVERS = {
    "tool": [*COMMAND, "mcp", "--http", "127.0.0.1:0"],
    "fixture": [sys.executable, "-m", "tests.mcp.conformance_server"],
}


def expected_failures(server: str) -> list[str]:
    """Return the scenarios of the list for one of the two servers."""
    failures: dict[str, list[str]] = {}
    section = ""
    for line in (_TESTS / "conformance_failures.yml").read_text().splitlines():
        if line.endswith(":") and not line.startswith((" ", "#")):
            section = line.removesuffix(":")
        elif line.strip().startswith("- "):
            failures.setdefault(section, []).append(line.strip().removeprefix("- "))
    return failures[server]


@contextmanager
def serving(tool: Tool, command: list[str]) -> Iterator[str]:
    """Start a server, and yield its URL."""
    environ = {**tool.environ, "PYTHONPATH": str(_TESTS.parents[1])}
    with subprocess.Popen(
        command,
        cwd=tool.cwd,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        assert line.startswith("Listening on "), line
        try:
            yield line.removeprefix("Listening on ").strip()
        finally:
            server.terminate()


@needs_node
@pytest.mark.parametrize("server", list(_SERVERS))
def test_the_conformance_suite_finds_no_other_failures_than_those_that_are_listed(
    tool: Tool,
    tmp_path: Path,
    server: str,
) -> None:
    expected = expected_failures(server)
    baseline = tmp_path / "expected.yml"
    baseline.write_text("server:\n" + "".join(f"  - {name}\n" for name in expected))

    with serving(tool, _SERVERS[server]) as url:
        ran = subprocess.run(
            [NODE, _SUITE, "server", "--url", url, "--expected-failures", baseline],
            cwd=tmp_path,
            env=node_environment(tool.environ),
            capture_output=True,
            text=True,
            check=False,
        )

    summary = ran.stdout.partition("=== SUMMARY ===")[2]
    assert ran.returncode == 0, summary + ran.stderr
    assert MUST_PASS.isdisjoint(expected)


@needs_node
def test_every_json_value_comes_back_to_the_typescript_client(tool: Tool) -> None:
    """The client refuses a response that does not fit the schema of its tool."""
    script = MODULES.parent / "json_values.mjs"
    script.write_text((_TESTS / "node" / "json_values.mjs").read_text())

    ran = subprocess.run(
        [NODE, script, json.dumps(VALUES), *COMMAND, "mcp"],
        cwd=tool.cwd,
        env=node_environment(tool.environ),
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.endswith(f"{len(VALUES)} values\n")


@needs_node
def test_the_inspector_lists_the_tools_and_calls_one(tool: Tool) -> None:
    inspector: list[str | Path] = [NODE, _inspector_command(), "--cli", *COMMAND, "mcp"]

    def inspect(*arguments: str) -> str:
        ran = subprocess.run(
            [*inspector, *arguments],
            cwd=tool.cwd,
            env=node_environment(tool.environ),
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return str(ran.stdout)

    listed = json.loads(inspect("--method", "tools/list"))
    called = json.loads(inspect("--method", "tools/call", "--tool-name", "status"))

    assert "task_claim" in {each["name"] for each in listed["tools"]}
    assert called["structuredContent"]["ok"]


@needs_fastmcp
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_client_of_fastmcp_accepts_each_response(tool: Tool, transport: str) -> None:
    def call_tools(*server: str) -> Any:
        ran = subprocess.run(
            [_FASTMCP, _TESTS / "fastmcp" / "call_tools.py", *server],
            cwd=tool.cwd,
            # The packages of our environment must not get in the way of those of fastmcp.
            env={**tool.environ, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])

    if transport == "stdio":
        command = ["env", f"PYTHONPATH={tool.environ['PYTHONPATH']}", *COMMAND, "mcp"]
        seen = call_tools(*command)
    else:
        with serving(tool, _SERVERS["tool"]) as url:
            seen = call_tools(url)

    assert "task_claim" in seen["tools"]
    assert f"{PROGRAM}://manifest" in seen["resources"]
    assert seen["is_error"] == [False, False, True]
    assert [task["body"] for task in seen["claimed"]["data"]["tasks"]] == [None, "text"]
    assert seen["failed"]["error"]["code"] == "KEY_NOT_FOUND"


def _inspector_command() -> Path:
    package = json.loads((_INSPECTOR / "package.json").read_text())
    command = package["bin"]
    if isinstance(command, dict):
        command = next(iter(command.values()))
    return _INSPECTOR / str(command)
