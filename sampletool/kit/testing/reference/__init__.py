"""Write the reference, docs/reference: a page for each command, and pages about what they share.

Everything is read from the code, so the reference cannot disagree with it. Each command, option,
setting, variable, exit code and error has a heading of its own, so each of them has an address.
"""

from pathlib import Path

from ...app import root_command
from ...commands.manifest import describe, find_commands
from ...project import ROOT
from .command import Command, command_page, page_name
from .index import index_page
from .shared_pages import (
    environment_page,
    errors_page,
    exit_codes_page,
    options_page,
    output_page,
    settings_page,
)

FOLDER = ROOT / "docs" / "reference"


def pages() -> dict[Path, str]:
    """Return the content of each page, by its path."""
    commands = all_commands()
    contents = {
        "index.md": index_page(commands),
        "options.md": options_page(),
        "settings.md": settings_page(),
        "environment.md": environment_page(),
        "exit-codes.md": exit_codes_page(),
        "errors.md": errors_page(commands),
        "output.md": output_page(),
    }
    for command in commands:
        contents[page_name(command.name)] = command_page(command)
    return {FOLDER / name: content for name, content in contents.items()}


def all_commands() -> list[Command]:
    """Return all commands, sorted by name."""
    commands = []
    for name, found in find_commands(root_command()):
        described = describe(name, found)
        # For example sampletool.state.commands.task.claim
        part = found.callback.__module__.split(".")[1]
        commands.append(Command(name=name, part=part, spec=found.spec, described=described))
    return commands
