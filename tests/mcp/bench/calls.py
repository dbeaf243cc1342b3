"""A call over a connection to the server, beside the same call on the command line, in one run."""

import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from mcp import Client, StdioServerParameters

from sampletool.kit.program import WORKSPACE_FILE
from sampletool.mcp.runner import COMMAND

_ROUNDS = 30
_READ_AT_MOST_MS = 5.0


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        Path(name, WORKSPACE_FILE).write_text("[settings]\nlevel = 1\n")
        environ = {"PATH": os.environ["PATH"], "HOME": name, "TMPDIR": name}
        asyncio.run(_compare(name, environ))


async def _compare(workspace: str, environ: dict[str, str]) -> None:
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp"], env=environ, cwd=workspace
    )

    async def command_line(number: int) -> None:
        call = [*COMMAND, "config", "get", "level"]
        subprocess.run(call, cwd=workspace, env=environ, check=True, stdout=subprocess.DEVNULL)

    async with Client(server) as client:

        async def read(number: int) -> None:
            await client.call_tool("config_get", {"key": "level"})

        async def change(number: int) -> None:
            await client.call_tool("config_set", {"words": [f"level={number}"]})

        await client.list_tools()
        print(f"{f'median of {_ROUNDS}':<40} {'wall ms':>8} {'at most':>8}")
        ways = {
            "config_get over a connection": (read, _READ_AT_MOST_MS),
            "config_set over a connection": (change, ""),
            "config get on the command line": (command_line, ""),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(-3, _ROUNDS):
            for name, (call, _) in ways.items():
                took = await _time(call, number)
                if number >= 0:
                    taken[name].append(took)
        for name, (_, at_most) in ways.items():
            print(f"{name:<40} {statistics.median(taken[name]):8.1f} {at_most:>8}")
    print()


async def _time(call: Callable[[int], Awaitable[None]], number: int) -> float:
    began = time.perf_counter()
    await call(number)
    return (time.perf_counter() - began) * 1000
