"""A command starts quickly: it imports the modules that it needs, and nothing else."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.testing.tool import Tool

_RUN = f"""
import os, sys
os._exit = lambda status: None
from {PACKAGE}.kit.start import main
sys.argv[0] = "{PROGRAM}"
main("{PACKAGE}")"""
"""A program that runs the tool, and does not exit."""

_HEAVY = {
    "rich",
    "pydantic",
    "asyncio",
    "sqlite3",
    "multiprocessing",
    "redis",
    "psycopg",
    "mcp",
    "http",
    "click",
    "platformdirs",
    "tempfile",
    f"{PACKAGE}.kit.work",
    f"{PACKAGE}.kit.contract.lock_held",
}
"""Modules that no plain command needs."""

_FOR_CHANGES = {"tomlkit", "filelock", "secrets", "hashlib", "_hashlib", "decimal"}
"""Modules that only a command that takes a lock or writes TOML needs."""


def imported(tool: Tool, *args: str) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    return imported_by(tool, _RUN, *args)


def imported_by(tool: Tool, code: str, *args: str) -> set[str]:
    """Return the modules that a program has imported when it ends."""
    environ = {}
    for name, value in tool.environ.items():
        # Measuring coverage imports modules, and with XDG_ variables platformdirs is not needed.
        if not name.startswith(("COVERAGE_", "XDG_")):
            environ[name] = value
    listing = f"{code}\nimport json, sys\nsys.stderr.write(json.dumps(sorted(sys.modules)))"
    # A fresh interpreter, because in a forked process everything is imported.
    ran = subprocess.run(
        [sys.executable, "-c", listing, *args],
        cwd=tool.cwd,
        env=environ,
        capture_output=True,
        check=True,
    )
    return set(json.loads(ran.stderr.decode()))


def is_of_a_part(module: str) -> bool:
    """Return whether a module belongs to a part, not to the kit."""
    is_ours = module.startswith(f"{PACKAGE}.")
    return is_ours and not module.startswith(f"{PACKAGE}.kit")


@pytest.mark.parametrize(
    ("arguments", "at_most"),
    [(["config", "get", "level"], 68), (["config", "set", "a", "1"], 116)],
)
@pytest.mark.usefixtures("workspace")
def test_a_plain_command_imports_few_modules_besides_typer(
    tool: Tool,
    arguments: list[str],
    at_most: int,
) -> None:
    """Each module costs 0.25 ms at every start.

    Of those that `set` imports, 20 belong to filelock and 12 to tomlkit.
    """
    modules = imported(tool, *arguments) - imported_by(tool, "import typer")

    of_the_kit = {name for name in modules if not is_of_a_part(name)}
    assert len(of_the_kit) <= at_most, sorted(of_the_kit)


@pytest.mark.parametrize(
    "arguments",
    [["config", "get", "level"], ["config", "list"], ["config", "path"]],
)
@pytest.mark.usefixtures("workspace")
def test_a_plain_command_imports_nothing_heavy(tool: Tool, arguments: list[str]) -> None:
    modules = imported(tool, *arguments)

    assert not modules & _HEAVY
    assert not modules & _FOR_CHANGES


@pytest.mark.usefixtures("workspace")
def test_a_command_that_changes_settings_imports_nothing_else_that_is_heavy(tool: Tool) -> None:
    modules = imported(tool, "config", "set", "a", "1")

    assert not modules & _HEAVY


@pytest.mark.usefixtures("workspace")
def test_a_run_imports_only_its_own_command(tool: Tool) -> None:
    modules = imported(tool, "config", "get", "level")

    commands = {name for name in modules if name.startswith("sampletool.kit.commands.")}
    config = "sampletool.kit.commands.config"
    assert commands == {config, f"{config}.get", f"{config}._options", f"{config}._showing"}


@pytest.mark.usefixtures("workspace")
def test_a_setting_of_the_kit_is_read_without_importing_a_part(tool: Tool) -> None:
    modules = imported(tool, "config", "get", "jobs")

    assert {name for name in modules if is_of_a_part(name)} == set()


@pytest.mark.usefixtures("workspace")
def test_an_unknown_setting_is_read_by_importing_only_the_settings_of_the_parts(tool: Tool) -> None:
    tool("config", "set", "other", "1")

    modules = imported(tool, "config", "get", "other")

    inside_parts = set()
    for name in modules:
        if is_of_a_part(name):
            _, _, *names_below = name.split(".")
            inside_parts.add(".".join(names_below))
    assert inside_parts <= {"", "settings"}


def fsync_count(tool: Tool, workspace: Path, value: str) -> int:
    """Set a key, and return how often the command flushes a file or directory to the disk."""
    count = 0
    with tool.stepped("config", "set", "a", value, watch=workspace) as stepped:
        while stepped.next_event is not None:
            stepped.step()
        for event in stepped.past_events:
            count += event.name == "os.fsync"
    return count


def test_a_change_costs_two_fsyncs_and_an_unchanged_file_none(tool: Tool, workspace: Path) -> None:
    first = fsync_count(tool, workspace, "1")
    second = fsync_count(tool, workspace, "1")

    assert (first, second) == (2, 0)
