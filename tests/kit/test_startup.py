"""Light at the door: a call imports what it needs and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.testing.tool import Tool

_LIST = f"""
import json, sys
from {PACKAGE}.kit.start import main
sys.argv[0] = "{PROGRAM}"
status = main()
sys.stderr.write(json.dumps(sorted(sys.modules)))
sys.exit(status)
"""
_HEAVY = {"rich", "pydantic", "asyncio", "sqlite3", "multiprocessing", "redis", "psycopg", "mcp", "http", "click"}


def imported(tool: Tool, *args: str) -> set[str]:
    env = {name: value for name, value in tool.environ.items() if not name.startswith("COVERAGE_")}
    ran = subprocess.run([sys.executable, "-c", _LIST, *args], cwd=tool.cwd, env=env, capture_output=True, check=True)
    return set(json.loads(ran.stderr.decode()))


@pytest.mark.parametrize(
    ("call", "unwanted"),
    [
        (["config", "get", "level"], {"filelock", "secrets", "logging", "platformdirs"}),
        (["config", "list"], {"filelock", "platformdirs"}),
        (["config", "set", "a", "1"], {"platformdirs"}),
        (["config", "path"], {"filelock"}),
    ],
)
def test_a_plain_call_imports_nothing_heavy(tool: Tool, workspace: Path, call: list[str], unwanted: set[str]) -> None:
    modules = imported(tool, *call)

    assert not modules & (_HEAVY | unwanted)
    assert workspace


def test_a_call_imports_its_own_command_only(tool: Tool, workspace: Path) -> None:
    commands = {
        name for name in imported(tool, "config", "get", "level") if name.startswith("sampletool.kit.commands.")
    }

    shared = {"sampletool.kit.commands.config._options"}
    assert commands == {"sampletool.kit.commands.config", "sampletool.kit.commands.config.get"} | shared
    assert workspace


def test_a_change_costs_two_fsyncs_and_an_unchanged_one_none(tool: Tool, workspace: Path) -> None:

    def fsyncs(value: str) -> int:
        with tool.stepped("config", "set", "a", value, watch=workspace) as stepped:
            while stepped.at is not None:
                stepped.step()
            return sum(event.name == "os.fsync" for event in stepped.past)

    assert [fsyncs("1"), fsyncs("1")] == [2, 0]
