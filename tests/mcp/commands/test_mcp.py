"""tool mcp"""

import json
import subprocess
from pathlib import Path

import pytest

from sampletool.kit.program import PROGRAM
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.tool import Tool


def test_the_settings_of_a_client_start_the_server_in_this_workspace(
    tool: Tool, workspace: Path
) -> None:
    config = json.loads(tool("mcp", "--print-config").text)

    server = config["mcpServers"][PROGRAM]
    assert server["args"][-3:] == ["--cwd", str(workspace), "mcp"]
    call = [server["command"], *server["args"], "--help"]
    ran = subprocess.run(
        call, cwd="/", env=tool.environ, capture_output=True, text=True, check=True
    )
    assert "Serve the commands as tools" in ran.stdout


def test_settings_can_be_had_as_an_answer_too(tool: Tool) -> None:
    assert (
        tool("mcp", "--print-config", "--json").data["value"]["mcpServers"][PROGRAM]["args"][-1]
        == "mcp"
    )


@pytest.mark.parametrize(
    "options", [["--only", "state,sample"], ["--all"], ["--only", "kit", "--all"]]
)
def test_the_settings_of_a_client_have_the_same_selection(
    tool: Tool,
    workspace: Path,
    options: list[str],
) -> None:
    config = tool("mcp", *options, "--print-config", "--json").data["value"]

    arguments = config["mcpServers"][PROGRAM]["args"]
    assert arguments[-len(options) - 3 :] == ["--cwd", str(workspace), "mcp", *options]


@pytest.mark.parametrize("options", [(), ("--http", "127.0.0.1:0")], ids=["stdio", "http"])
def test_without_the_extra_it_says_how_to_install_it(
    tool: Tool,
    tmp_path: Path,
    options: tuple[str, ...],
) -> None:
    (tmp_path / "mcp.py").write_text("raise ModuleNotFoundError('No module named mcp', name='mcp')")

    ran = tool("mcp", *options, PYTHONPATH=f"{tmp_path}:{tool.environ['PYTHONPATH']}")

    assert (ran.status, ran.code) == (4, "EXTRA_NOT_INSTALLED")
    assert "'sampletool[mcp]'" in ran.error["suggestion"]


def test_without_a_client_it_ends_at_once_and_prints_nothing(tool: Tool) -> None:
    fork_server().load("sampletool.mcp.stdio")  # 0.5 s, if one of the other tests has not done it

    ran = tool("mcp")

    assert (ran.status, ran.stdout) == (0, b"")
    assert b'"calls":0' in ran.stderr
