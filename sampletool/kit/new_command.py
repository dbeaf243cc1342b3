"""Create a command and its test, to be edited: this is what `make new-command NAME=group/name` runs.

The command is created in the part that has the group. If no part has it, a new part with the name of
the group is created. No file is replaced. README.md, next to this file, explains each piece.
"""

import keyword
import re
import sys
from pathlib import Path

from .part_discovery import command_packages, directory_of, part_names
from .program import PACKAGE, PROGRAM
from .project import ROOT

_NAME = re.compile(r"[a-z](-?[a-z0-9]){0,29}")
_COMMAND = '''"""Greet somebody. Describe here what the command does."""

from dataclasses import dataclass
from typing import Annotated

import typer

from {package}.kit.context import Context
from {package}.kit.contract.command_spec import CommandSpec

spec = CommandSpec(effect="nothing", examples=("{group} {name} Ann",))


@dataclass(frozen=True)
class Result:
    """The data that the command returns."""

    greeting: str

    def lines(self) -> list[str]:
        """Return what a person sees."""
        return [self.greeting]


def greet(name: str, directory: str) -> Result:
    """Return a greeting. Replace this with the work of the command."""
    return Result(f"Hello {{name}}, this is {{directory}}.")


def command(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Greet this person, for example Ann.")],
) -> Result:
    """Greet somebody."""
    context: Context = ctx.obj
    return greet(name, context.cwd.name)
'''
_TEST = '''"""{program} {group} {name}"""

from {package}.kit.testing.tool import Tool


def test_the_greeting_names_the_person_and_the_directory(tool: Tool) -> None:
    greeting = tool("{group}", "{name}", "Ann").data["greeting"]

    assert greeting == f"Hello Ann, this is {{tool.cwd.name}}."
'''


def new_files(group: str, name: str) -> dict[str, str]:
    """Return the files to write, by their paths: the command, its test, and packages that are missing."""
    folder, file = group.replace("-", "_"), name.replace("-", "_")
    part = next((part for part in part_names() if (ROOT / PACKAGE / part / "commands" / folder).is_dir()), folder)
    place, tests = f"{PACKAGE}/{part}", f"tests/{part}"
    about = f'"""Describe the group {group} here."""\n'
    packages = dict.fromkeys((place, f"{place}/commands", f"{place}/commands/{folder}"), about)
    packages |= dict.fromkeys((tests, f"{tests}/commands"), "")
    around = {f"{package}/__init__.py": text for package, text in packages.items()}
    names = {"package": PACKAGE, "program": PROGRAM, "group": group, "name": name}
    return {path: text for path, text in around.items() if not (ROOT / path).exists()} | {
        f"{place}/commands/{folder}/{file}.py": _COMMAND.format(**names),
        f"{tests}/commands/test_{folder}_{file}.py": _TEST.format(**names),
    }


def main(args: list[str]) -> None:
    words = "".join(args).split("/")
    if len(words) != 2 or not all(_NAME.fullmatch(word) and not keyword.iskeyword(word) for word in words):
        raise SystemExit("Usage: make new-command NAME=group/name    (small letters, digits, single dashes)")
    places = [Path(directory_of(package)) / words[0].replace("-", "_") for package in command_packages()]
    if places[0].exists() or words[0] == "kit" or any(place.with_suffix(".py").exists() for place in places):
        raise SystemExit(f"{words[0]} is a command, or belongs to the kit: choose another group.")
    files = new_files(*words)
    if there := [path for path in files if (ROOT / path).exists()]:
        raise SystemExit(f"Already there: {', '.join(there)}.")
    for path, text in files.items():
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        with (ROOT / path).open("x") as file:
            file.write(text)
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
