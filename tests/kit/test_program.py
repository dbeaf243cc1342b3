"""kit/program.py: the kit works for the package that is named, or for the one that contains it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sampletool import kit
from sampletool.kit import program
from sampletool.kit.program import KIT, KIT_DIRECTORY

_NAMES = '"""Keep accounts."""\nPROGRAM = "led-ger"\n__version__ = "7.1"\n'
_COMMAND = '''"""Say hello."""

from dataclasses import dataclass

import typer

from {kit}.contract.command_spec import CommandSpec

spec = CommandSpec(effect="nothing", examples=("hello",))


@dataclass(frozen=True)
class Hello:
    """A greeting."""

    greeting: str

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [self.greeting]


def command(ctx: typer.Context) -> Hello:
    """Say hello."""
    return Hello("hello")
'''


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Return a directory with the package `ledger`, which depends on the kit, and a workspace."""
    package = tmp_path / "ledger"
    commands = package / "books" / "commands"
    commands.mkdir(parents=True)
    (package / "__init__.py").write_text(_NAMES)
    (package / "__main__.py").write_text(
        f'from {KIT}.start import main\n\nmain(package="ledger")\n'
    )
    (package / "books" / "__init__.py").write_text('"""Books."""\n')
    settings = '{"pages": {"kind": "count", "default": "5", "help": "Pages of a book."}}'
    (package / "books" / "settings.py").write_text(f'"""Settings."""\n\nSETTINGS = {settings}\n')
    (commands / "__init__.py").write_text('"""Books."""\n')
    (commands / "hello.py").write_text(_COMMAND.format(kit=KIT))
    (tmp_path / "led-ger.toml").write_text("[settings]\nlevel = 1\n")
    return tmp_path


def run(directory: Path, *args: str, **environ: str) -> Any:
    """Run the command of `ledger` in a directory, and return the response."""
    completed = subprocess.run(
        [sys.executable, "-m", "ledger", *args, "--json"],
        cwd=directory,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        check=False,
    )
    return json.loads(completed.stdout)


def test_a_package_that_depends_on_the_kit_has_the_kit_s_commands_and_its_own(ledger: Path) -> None:
    hello = run(ledger, "hello")
    manifest = run(ledger, "manifest")

    assert hello["data"] == {"greeting": "hello"}
    names = [command["command"] for command in manifest["data"]["commands"]]
    assert "hello" in names
    assert "config set" in names
    assert "build" not in names


def test_its_files_and_variables_have_its_own_names(ledger: Path) -> None:
    jobs = run(ledger, "config", "get", "jobs", LED_GER_JOBS="3")
    level = run(ledger, "config", "get", "level")
    run(ledger, "config", "set", "level", "2")

    assert jobs["data"]["value"] == 3
    assert level["data"]["source"] == "project"
    assert (ledger / "led-ger.toml").read_text() == "[settings]\nlevel = 2\n"
    assert not (ledger / "tool.toml").exists()


def test_its_settings_are_known_and_those_of_other_programs_are_not(ledger: Path) -> None:
    listed = run(ledger, "config", "list")["data"]["settings"]

    names = {setting["key"] for setting in listed}
    assert "pages" in names
    assert "store" not in names


def test_its_responses_and_its_version_are_its_own(ledger: Path) -> None:
    meta = run(ledger, "hello")["meta"]
    version = [sys.executable, "-m", "ledger", "--version"]
    printed = subprocess.run(version, cwd=ledger, capture_output=True, text=True, check=True)

    assert meta["tool_version"] == "7.1"
    assert printed.stdout == "led-ger 7.1\n"


def test_the_variable_is_for_processes_without_an_entry_point(ledger: Path) -> None:
    parts = [sys.executable, "-m", f"{KIT}.parts"]
    (ledger / "pyproject.toml").touch()
    environ = {**os.environ, "KIT_PACKAGE": "ledger"}

    listed = subprocess.run(parts, cwd=ledger, env=environ, stdout=subprocess.PIPE, check=True)
    response = run(ledger, "hello", KIT_PACKAGE="sampletool")

    assert listed.stdout == b"books\n"
    # The entry point has named its package, so the variable does not count.
    assert response["data"] == {"greeting": "hello"}


def test_without_a_name_the_program_is_the_package_that_contains_the_kit(tmp_path: Path) -> None:
    package = tmp_path / "other"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(KIT_DIRECTORY, package / "kit", ignore=ignored)
    (package / "__init__.py").write_text(_NAMES)
    code = "from other.kit import program; print(program.PACKAGE, program.PROGRAM, program.KIT)"

    command = [sys.executable, "-c", code]
    printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)

    assert printed.stdout == "other led-ger other.kit\n"


def test_a_package_that_is_named_too_late_is_refused() -> None:
    with pytest.raises(RuntimeError, match="It cannot become ledger now"):
        kit.name_package("ledger")


def test_naming_the_same_package_again_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kit, "package_of_program", "")

    kit.name_package(program.PACKAGE)

    assert kit.package_of_program == program.PACKAGE


def test_the_names_of_the_workspace_are_built_from_the_command() -> None:
    assert program.WORKSPACE_FILE == "tool.toml"
    assert program.WORKSPACE_DIRECTORY == ".tool"


@pytest.mark.parametrize(
    ("command", "name", "expected"),
    [
        ("tool", "jobs", "TOOL_JOBS"),
        ("tool", "lock-timeout", "TOOL_LOCK_TIMEOUT"),
        ("my-tool", "jobs", "MY_TOOL_JOBS"),
    ],
)
def test_a_variable_has_only_letters_that_every_shell_accepts(
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    name: str,
    expected: str,
) -> None:
    monkeypatch.setattr(program, "PROGRAM", command)

    assert program.env_variable(name) == expected
