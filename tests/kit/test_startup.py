"""A light start: a call imports what it needs and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.testing.tool import Tool

_CALL = f"""
import os, sys
os._exit = lambda status: None
from {PACKAGE}.kit.start import main
sys.argv[0] = "{PROGRAM}"
main()"""
_HEAVY = {"rich", "pydantic", "asyncio", "sqlite3", "multiprocessing", "redis", "psycopg", "mcp", "http", "click",
          "platformdirs", "tempfile", f"{PACKAGE}.kit.work",
          f"{PACKAGE}.kit.contract.lock_held"}  # fmt: skip
_FOR_CHANGES = {"tomlkit", "filelock", "secrets", "hashlib", "_hashlib", "decimal"}
"""Only a call that takes a lock or writes TOML pays for them."""


def imported(tool: Tool, *args: str) -> set[str]:
    return imported_by(tool, _CALL, *args)


def imported_by(tool: Tool, code: str, *args: str) -> set[str]:
    env = {name: value for name, value in tool.environ.items() if not name.startswith(("COVERAGE_", "XDG_"))}
    listing = f"{code}\nimport json, sys\nsys.stderr.write(json.dumps(sorted(sys.modules)))"
    # A fresh interpreter here and below: in a forked process everything is imported.
    ran = subprocess.run([sys.executable, "-c", listing, *args], cwd=tool.cwd, env=env, capture_output=True, check=True)
    return set(json.loads(ran.stderr.decode()))


@pytest.mark.parametrize(("call", "at_most"), [(["config", "get", "level"], 63), (["config", "set", "a", "1"], 111)])
def test_a_plain_call_imports_so_many_modules_beside_typer(
    tool: Tool, workspace: Path, call: list[str], at_most: int
) -> None:
    """Each costs a quarter of a millisecond, at every start. Of those of `set`, 20 are filelock and 12 are tomlkit."""
    beside = imported(tool, *call) - imported_by(tool, "import typer")
    beside = {name for name in beside if not name.startswith(f"{PACKAGE}.") or name.startswith(f"{PACKAGE}.kit")}

    assert len(beside) <= at_most, sorted(beside)
    assert workspace


@pytest.mark.parametrize(
    "call", [["config", "get", "level"], ["config", "list"], ["config", "set", "a", "1"], ["config", "path"]]
)
def test_a_plain_call_imports_nothing_heavy(tool: Tool, workspace: Path, call: list[str]) -> None:
    unwanted = _HEAVY if "set" in call else _HEAVY | _FOR_CHANGES

    assert not imported(tool, *call) & unwanted
    assert workspace


def test_a_call_imports_its_own_command_only(tool: Tool, workspace: Path) -> None:
    commands = {
        name for name in imported(tool, "config", "get", "level") if name.startswith("sampletool.kit.commands.")
    }

    config = "sampletool.kit.commands.config"
    shared = {f"{config}._options", f"{config}._showing"}
    assert commands == {"sampletool.kit.commands.config", "sampletool.kit.commands.config.get"} | shared
    assert workspace


def test_a_call_imports_nothing_of_the_parts_but_the_settings_that_they_know(tool: Tool, workspace: Path) -> None:
    def parts(key: str) -> set[str]:
        imported_names = (name.split(".") for name in imported(tool, "config", "get", key))
        return {".".join(name[2:]) for name in imported_names if name[0] == PACKAGE and name[1:2] not in ([], ["kit"])}

    assert tool("config", "set", "other", "1").data["effect"] == "created"
    assert (parts("jobs"), parts("other") <= {"", "settings"}) == (set(), True)
    assert workspace


def test_a_change_costs_two_fsyncs_and_an_unchanged_one_none(tool: Tool, workspace: Path) -> None:

    def fsyncs(value: str) -> int:
        with tool.stepped("config", "set", "a", value, watch=workspace) as stepped:
            while stepped.at is not None:
                stepped.step()
            return sum(event.name == "os.fsync" for event in stepped.past)

    assert [fsyncs("1"), fsyncs("1")] == [2, 0]
