"""`make new-command NAME=group/name`: writes a command in the anatomy of all commands, and its test, to be changed.

It goes into the part that has the group; where there is none, into a new part of the group's name. Nothing is replaced.
"""

import keyword
import re
import sys

from .parts import TOP, command_packages, part_names
from .program import PACKAGE, PROGRAM

_NAME = re.compile(r"[a-z](-?[a-z0-9]){0,29}")
_COMMAND = '''"""{group} {name}: say here what it does."""

from typing import Annotated, NamedTuple

import typer

from {package}.kit.context import Context
from {package}.kit.contract.command_spec import CommandSpec

spec = CommandSpec(effect="nothing", examples=("{group} {name} Ann",))


class Result(NamedTuple):
    greeting: str

    def lines(self) -> list[str]:
        return [self.greeting]


def greet(whom: str, cwd: str) -> Result:
    return Result(f"Hello {{whom}}, this is {{cwd}}.")


def command(ctx: typer.Context, whom: Annotated[str, typer.Argument(metavar="WHOM", help="Who it greets.")]) -> Result:
    """Say here what it does."""
    context: Context = ctx.obj
    return greet(whom, context.cwd.name)
'''
_TEST = '''"""{program} {group} {name}"""

from {package}.kit.testing.tool import Tool


def test_it_greets(tool: Tool) -> None:
    greeting = tool("{group}", "{name}", "Ann").data["greeting"]

    assert greeting == f"Hello Ann, this is {{tool.cwd.name}}."
'''


def new_files(group: str, name: str) -> dict[str, str]:
    """What is written, by its path: the command, its test, and what is missing around them."""
    folder, file = group.replace("-", "_"), name.replace("-", "_")
    part = next((part for part in part_names() if (TOP / PACKAGE / part / "commands" / folder).is_dir()), folder)
    place, tests = f"{PACKAGE}/{part}", f"tests/{part}"
    about = f'"""{group.capitalize()}: say here what it is about."""\n'
    packages = dict.fromkeys((place, f"{place}/commands", f"{place}/commands/{folder}"), about)
    packages |= dict.fromkeys((tests, f"{tests}/commands"), "")
    around = {f"{package}/__init__.py": text for package, text in packages.items()}
    names = {"package": PACKAGE, "program": PROGRAM, "group": group, "name": name}
    return {path: text for path, text in around.items() if not (TOP / path).exists()} | {
        f"{place}/commands/{folder}/{file}.py": _COMMAND.format(**names),
        f"{tests}/commands/test_{folder}_{file}.py": _TEST.format(**names),
    }


def main(args: list[str]) -> None:
    words = "".join(args).split("/")
    if len(words) != 2 or not all(_NAME.fullmatch(word) and not keyword.iskeyword(word) for word in words):
        raise SystemExit("Usage: make new-command NAME=group/name    (small letters, digits, single dashes)")
    places = [TOP.joinpath(*package.split(".")) / words[0].replace("-", "_") for package in command_packages()]
    if places[0].exists() or words[0] == "kit" or any(place.with_suffix(".py").exists() for place in places):
        raise SystemExit(f"{words[0]} is a command, or belongs to the kit: choose another group.")
    files = new_files(*words)
    if there := [path for path in files if (TOP / path).exists()]:
        raise SystemExit(f"Already there: {', '.join(there)}.")
    for path, text in files.items():
        (TOP / path).parent.mkdir(parents=True, exist_ok=True)
        with (TOP / path).open("x") as file:
            file.write(text)
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
