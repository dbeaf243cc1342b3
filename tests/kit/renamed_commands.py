"""The tool with two more commands: `paint`, which had other names before, and `draw`."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Annotated, Any

import typer

from sampletool.kit import command_folder
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.deprecation import DeprecatedFlag
from sampletool.kit.program import KIT, PACKAGE
from sampletool.kit.start import main as run_tool

_PACKAGE_OF_COMMANDS = f"{KIT}.commands"


@dataclass(frozen=True)
class Painted:
    """The result of both commands."""

    color: str

    def lines(self) -> list[str]:
        """Return the result as text."""
        return [self.color]


def paint(
    name: str,
    tone: Annotated[
        str,
        typer.Option("--tone", "--colour", metavar="NAME", help="Use this tone."),
        DeprecatedFlag("--colour", instead="Use --tone."),
    ] = "red",
    thick: Annotated[
        bool,
        typer.Option("--thick"),
        DeprecatedFlag("--thick", instead="Lines have one width."),
    ] = False,
) -> Painted:
    """Paint a thing."""
    return Painted(tone)


def draw() -> Painted:
    """Draw a thing."""
    return Painted("black")


def main() -> None:
    """Run the tool with the two commands and the arguments of this process. End the process."""
    paint_spec = CommandSpec(effect="nothing", former_names=("brush", "dye"), examples=("paint x",))
    draw_spec = CommandSpec(effect="nothing", deprecated="Use `tool paint`.")
    _add_module("paint", paint, paint_spec)
    _add_module("draw", draw, draw_spec)
    names_of_files = command_folder._names_in

    def names_with_two_more(package: str) -> list[str]:
        """Return the names of the commands in a package, as if it had the files of the two."""
        names = names_of_files(package)
        if package == _PACKAGE_OF_COMMANDS:
            names += ["paint", "draw"]
        return names

    command_folder._names_in = names_with_two_more
    sys.argv = ["tool", *sys.argv[1:]]
    sys.exit(run_tool(PACKAGE))


def _add_module(name: str, command: Callable[..., Any], spec: CommandSpec) -> None:
    """Add a module of a command, as if it had been imported from a file."""
    module = ModuleType(f"{_PACKAGE_OF_COMMANDS}.{name}")
    module.__dict__.update(spec=spec, command=command)
    sys.modules[module.__name__] = module
