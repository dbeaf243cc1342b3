"""tool mcp"""

import asyncio
import gc
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit.program import PROGRAM
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.tool import Tool
from sampletool.mcp.commands import mcp as module
from sampletool.mcp.commands.mcp import Served
from sampletool.mcp.http_address import HttpAccess, HttpAddress
from sampletool.mcp.runner import COMMAND


def config_of(arguments: list[str]) -> dict[str, Any]:
    """Return the configuration of a client that starts the server with these arguments."""
    server = {"command": COMMAND[0], "args": [*COMMAND[1:], *arguments]}
    return {"mcpServers": {PROGRAM: server}}


def test_the_settings_of_a_client_start_the_server_in_this_workspace(
    tool: Tool, workspace: Path
) -> None:
    config = json.loads(tool("mcp", "--print-config").text)

    assert config == config_of(["--cwd", str(workspace), "mcp"])
    server = config["mcpServers"][PROGRAM]
    call = [server["command"], *server["args"], "--help"]
    ran = subprocess.run(
        call, cwd="/", env=tool.environ, capture_output=True, text=True, check=True
    )
    assert "Serve the commands as tools" in ran.stdout


def test_settings_can_be_had_as_an_answer_too_also_without_a_workspace(
    tool: Tool,
    tmp_path: Path,
) -> None:
    ran = tool("mcp", "--print-config", "--json", "--cwd", str(tmp_path))

    assert ran.data == {"value": config_of(["mcp"])}


@pytest.mark.parametrize(
    "options", [["--only", "state,sample"], ["--all"], ["--only", "kit", "--all"]]
)
def test_the_settings_of_a_client_have_the_same_selection(
    tool: Tool,
    workspace: Path,
    options: list[str],
) -> None:
    ran = tool("mcp", *options, "--print-config", "--json")

    assert ran.data == {"value": config_of(["--cwd", str(workspace), "mcp", *options])}


@pytest.mark.parametrize(
    ("options", "selection"),
    [
        ({}, {"only": [], "offer_all": False}),
        ({"only": "kit,mcp"}, {"only": ["kit", "mcp"], "offer_all": False}),
        ({"offer_all": True}, {"only": [], "offer_all": True}),
    ],
)
@pytest.mark.parametrize("http", [None, "127.0.0.1:80"])
def test_a_server_of_each_kind_offers_the_selected_commands(
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    selection: dict[str, Any],
    http: str | None,
) -> None:
    seen: list[object] = []

    def serve_over_stdio(_context: object, load: Callable[[], object]) -> int:
        seen.append(load())
        return 3

    def serve_over_http(
        _context: object,
        address: HttpAddress,
        access: HttpAccess,
        load: Callable[[], object],
    ) -> int:
        assert (address.port, access.token) == (80, None)
        return serve_over_stdio(None, load)

    monkeypatch.delenv("TOOL_MCP_TOKEN", raising=False)
    monkeypatch.setattr(module, "load_tools", dict)
    monkeypatch.setattr(module, "serve_over_stdio", serve_over_stdio)
    monkeypatch.setattr(module, "serve_over_http", serve_over_http)
    signals = SimpleNamespace(check=lambda: seen.append("signals are checked"))
    context: Any = SimpleNamespace(obj=SimpleNamespace(signals=signals))

    served = module.command(context, http=http, **options)

    assert served == Served(3)
    assert seen == [selection, "signals are checked"]


@pytest.mark.parametrize(("calls", "commands"), [(0, "0 commands"), (1, "1 command")])
def test_at_the_end_a_person_sees_how_many_commands_were_run(calls: int, commands: str) -> None:
    assert Served(calls).lines() == [f"The server has exited after {commands}."]


def test_a_server_lives_for_long_so_garbage_is_collected() -> None:
    async def serve(loading: asyncio.Future[Any]) -> int:
        assert await loading == {}
        assert gc.isenabled()
        return 5

    was_enabled = gc.isenabled()
    gc.disable()
    try:
        assert module._run_server(serve, dict) == 5
    finally:
        if was_enabled:
            gc.enable()


def test_a_host_without_an_address_to_listen_on_is_refused(tool: Tool) -> None:
    ran = tool("mcp", "--host", "example.org")

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert ran.error["errors"][0]["param"] == "--host"
    assert "--http" in ran.error["suggestion"]


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
