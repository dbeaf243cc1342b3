"""The files that `make new-command` creates (see new_command.py).

In the templates, `$words` stands for the command as users type it, such as `item add`. `$kit` is
the kit as the new module imports it, such as `....kit`, and `$kit_package` is its full name.
"""

from string import Template

COMMAND = Template('''"""Count things in a file. Describe here what the command does."""

from dataclasses import dataclass
from typing import Annotated

import typer

from $kit.context import Context
from $kit.contract.command_spec import CommandSpec
from $kit.contract.errors import NoWorkspace
from $kit.contract.response import Effect
from $kit.global_options import DryRunOption
from $kit.safety.errors import InvalidToml
from $kit.safety.toml_file import TomlEdit
from $kit.settings.change import set_key

FILE = "counted.toml"
"""The file in the workspace that the command changes."""

spec = CommandSpec(
    effect="files",
    errors=(NoWorkspace,),
    locks=(FILE,),
    idempotent=False,
    examples=(
        "$words apple",
        "$words apple 3",
    ),
)


@dataclass(frozen=True)
class Counted:
    """The number of a thing after the change."""

    effect: Effect
    thing: str
    number: int

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [f"{self.thing}: {self.number}"]


def count(file: TomlEdit, thing: str, more: int) -> Counted:
    """Change the text of the file in memory. Replace this with the work of the command."""
    number_before = file.before.document.get(thing)
    if number_before is None:
        counted = Counted("created", thing, more)
    # People may edit the file by hand. Not isinstance(): True is an int.
    elif type(number_before) is not int:
        raise InvalidToml(str(file.before.path), f"{thing} is not a whole number")
    else:
        counted = Counted("updated", thing, number_before + more)
    set_key(file, (thing,), counted.number)
    return counted


def command(
    ctx: typer.Context,
    thing: Annotated[
        str,
        typer.Argument(metavar="THING", help="Count this thing, for example apple."),
    ],
    more: Annotated[
        int,
        typer.Argument(metavar="NUMBER", min=1, help="Add this to its number."),
    ] = 1,
    dry_run: DryRunOption = False,
) -> Counted:
    """Count things in a file.

    Several processes can count at the same time.
    """
    context: Context = ctx.obj
    with context.editing(context.workspace / FILE, dry_run=dry_run) as file:
        counted = count(file, thing, more)
        file.write()
    return counted
''')

TEST = Template('''"""$program $words"""

import tomllib
from pathlib import Path

import pytest

from $kit_package.testing.stopping import interrupt_at_each_step, kill_at_each_step
from $kit_package.testing.tool import Tool

COMMAND = [$quoted_words, "apple"]


@pytest.fixture
def file(workspace: Path) -> Path:
    """Return the path of the file that the command changes."""
    return workspace / "counted.toml"


@pytest.mark.usefixtures("workspace")
def test_numbers_are_added_up(tool: Tool) -> None:
    tool(*COMMAND, "3")

    counted = tool(*COMMAND).data

    assert counted == {"effect": "updated", "thing": "apple", "number": 4}


def test_eight_commands_at_once_lose_nothing(tool: Tool, file: Path) -> None:
    tool.together([COMMAND] * 8)

    assert tomllib.loads(file.read_text()) == {"apple": 8}


@pytest.mark.leaves_litter
def test_kill_9_at_each_step_leaves_the_old_file_or_the_new_one(tool: Tool, file: Path) -> None:
    tool(*COMMAND)

    stopped = kill_at_each_step(tool, *COMMAND, file=file)

    assert {each.text for each in stopped} == {"apple = 1\\n", "apple = 2\\n"}


def test_ctrl_c_at_each_step_releases_the_lock(tool: Tool, file: Path) -> None:
    stopped = interrupt_at_each_step(tool, *COMMAND, file=file)

    assert {each.text for each in stopped} == {None, "apple = 1\\n"}
    assert {each.next_run.status for each in stopped} == {0}


def test_a_dry_run_changes_nothing(tool: Tool, file: Path) -> None:
    counted = tool(*COMMAND, "--dry-run").data

    assert counted["number"] == 1
    assert not file.exists()


def test_a_value_that_is_not_a_number_is_named(tool: Tool, file: Path) -> None:
    file.write_text('apple = "many"\\n')

    error = tool(*COMMAND).error

    assert error["code"] == "INVALID_TOML"
    assert "apple is not a whole number" in error["message"]
''')

PLAIN_COMMAND = Template('''"""Greet somebody. Describe here what the command does."""

from dataclasses import dataclass
from typing import Annotated

import typer

from $kit.context import Context
from $kit.contract.command_spec import CommandSpec

spec = CommandSpec(
    effect="nothing",
    examples=("$words Ann",),
)


@dataclass(frozen=True)
class Greeting:
    """The data that the command returns."""

    greeting: str

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [self.greeting]


def greet(name: str, directory: str) -> Greeting:
    """Return a greeting. Replace this with the work of the command."""
    return Greeting(f"Hello {name}, this is {directory}.")


def command(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="Greet this person, for example Ann."),
    ],
) -> Greeting:
    """Greet somebody."""
    context: Context = ctx.obj
    return greet(name, context.cwd.name)
''')

PLAIN_TEST = Template('''"""$program $words"""

from $kit_package.testing.tool import Tool


def test_the_greeting_names_the_person_and_the_directory(tool: Tool) -> None:
    greeting = tool($quoted_words, "Ann").data["greeting"]

    assert greeting == f"Hello Ann, this is {tool.cwd.name}."
''')
