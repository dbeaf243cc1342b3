"""What belongs to the project: its commands, its folders of code and its pages.

The kit belongs to the project that develops it. In other projects it has CHECKSUMS, or is in
another package, and it has passed these rules elsewhere.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ... import part_discovery
from ...checksums import CHECKSUMS_FILE
from ...command_folder import CommandFolder, FileCommand
from ...commands.manifest import Described, describe
from ...contract.command_spec import CommandSpec
from ...contract.errors import CommandIncomplete
from ...program import KIT, PACKAGE, PACKAGE_DIRECTORY
from ...project import ROOT
from ..how_to import relative

IS_KIT_IN_PACKAGE = KIT.startswith(f"{PACKAGE}.")
"""Whether the project contains the kit. Otherwise, it depends on the package that does."""

IS_KIT_DEVELOPED_HERE = IS_KIT_IN_PACKAGE and not CHECKSUMS_FILE.exists()
"""Whether the kit is code of the project itself."""

_KIT_FOLDER = Path(PACKAGE_DIRECTORY, part_discovery.KIT_FOLDER_NAME)


@dataclass(frozen=True)
class OwnCommand:
    """A command of the project."""

    name: str
    """For example `config set`."""
    command: FileCommand

    @property
    def spec(self) -> CommandSpec:
        """What the command promises."""
        return self.command.spec

    @property
    def described(self) -> Described:
        """The description of the command in the manifest."""
        return describe(self.name, self.command)

    @property
    def module(self) -> str:
        """The name of its module."""
        callback = self.command.callback
        assert callback is not None
        return callback.__module__

    @property
    def file(self) -> str:
        """The path of its file."""
        return file_of(self.module)


@dataclass(frozen=True)
class OwnGroup:
    """A group of commands of the project."""

    name: str
    summary: str
    """The first line of its help."""
    file: str


@dataclass(frozen=True)
class _Found:
    """What is in the command folders of the project."""

    commands: list[OwnCommand]
    groups: list[OwnGroup]
    incomplete: list[CommandIncomplete]
    """An error for each file that does not define everything that a command needs."""


def own_commands() -> list[OwnCommand]:
    """Return the commands of the project whose files are complete."""
    return _find_commands().commands


def own_groups() -> list[OwnGroup]:
    """Return the groups of commands of the project."""
    return _find_commands().groups


def incomplete_commands() -> list[CommandIncomplete]:
    """Return an error for each command file that is not complete."""
    return _find_commands().incomplete


@cache
def _find_commands() -> _Found:
    found = _Found(commands=[], groups=[], incomplete=[])
    for package in own_command_packages():
        _find_in(CommandFolder([package], "", None), "", found)
    return found


def _find_in(folder: CommandFolder, prefix: str, found: _Found) -> None:
    """Add to `found` what is in a folder. `prefix` begins the names of its commands."""
    for name in folder.commands:
        try:
            command = folder.get_command(None, name)
        except CommandIncomplete as error:
            found.incomplete.append(error)
            continue
        if isinstance(command, CommandFolder):
            summary, _, _ = (command.help or "").partition("\n")
            (package,) = command.packages
            group = OwnGroup(name=f"{prefix}{name}", summary=summary, file=file_of(package))
            found.groups.append(group)
            _find_in(command, f"{prefix}{name} ", found)
        else:
            found.commands.append(OwnCommand(f"{prefix}{name}", command))


def own_command_packages() -> list[str]:
    """Return the packages with the commands of the project."""
    return [package for package in part_discovery.command_packages() if is_own(package)]


def is_own(module: str) -> bool:
    """Return whether a module belongs to the project."""
    if module == KIT or module.startswith(f"{KIT}."):
        return IS_KIT_DEVELOPED_HERE
    return module.startswith(f"{PACKAGE}.")


def file_of(module: str) -> str:
    """Return the path of an imported module."""
    return relative(Path(str(sys.modules[module].__file__)))


def own_python_files() -> Iterator[Path]:
    """Yield the files of the project's package."""
    for file in sorted(Path(PACKAGE_DIRECTORY).rglob("*.py")):
        if IS_KIT_DEVELOPED_HERE or not file.is_relative_to(_KIT_FOLDER):
            yield file


def own_pages() -> list[Path]:
    """Return README.md and the pages of the project."""
    readme = ROOT / "README.md"
    pages = sorted((ROOT / "docs").rglob("*.md"))
    if readme.exists():
        return [readme, *pages]
    return pages
