"""Selects the commands that a server offers as tools.

A client adds the list of tools to every conversation with its model, so each tool costs tokens. By
default, a server only offers the commands that agents need for their daily work. The options
`--only` and `--all` select others. `make bench` prints the size of each list of tools.
"""

from collections.abc import Collection, Mapping
from typing import Any

from ..kit.contract.errors import did_you_mean
from ..kit.contract.text import quoted
from ..kit.part_discovery import KIT_FOLDER_NAME, command_packages
from ..kit.program import KIT, PACKAGE

OFFERED_BY_DEFAULT: Mapping[str, tuple[str, ...]] = {
    # Find out which workspace, settings and locks are in use. Change settings.
    "kit": ("status", "config get", "config list", "config set", "lock list"),
    # Build and test a project. Agents do this again and again.
    "sample": ("build", "test", "process"),
    # Share work and results with other agents.
    "state": (
        "counter add",
        "state get",
        "state set",
        "task add",
        "task claim",
        "task finish",
        "task list",
        "task release",
        "task renew",
        "task show",
    ),
    # These are for people: to learn, to test other programs, and to start a new project.
    "lab": (),
    "audit": (),
    "fork": (),
    "mcp": (),
}
"""The commands that are tools by default, by the part of the tool that contains them.

Of a part that is not listed here, all commands are tools.
"""


def parse_parts(text: str) -> list[str]:
    """Return the names of parts in a text such as `state,sample`.

    If a name is not the name of a part that has commands, raise ValueError with a message for the
    user.
    """
    known_names = _parts_with_commands()
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if name not in known_names:
            hint = did_you_mean(name, known_names)
            if not hint:
                hint = f"The parts are {', '.join(known_names)}."
            raise ValueError(f"there is no part {quoted(name)}. {hint}")
    return names


def select_commands(
    commands: Mapping[str, Any],
    only: Collection[str] = (),
    *,
    offer_all: bool = False,
) -> dict[str, Any]:
    """Return the commands that a server offers, by their names.

    With `offer_all`, return all commands. With `only`, return all commands of these parts. By
    default, return the commands of OFFERED_BY_DEFAULT.
    """
    if offer_all:
        return dict(commands)
    selected = {}
    for name, command in commands.items():
        part = part_of(command)
        if only:
            is_offered = part in only
        elif part in OFFERED_BY_DEFAULT:
            is_offered = name in OFFERED_BY_DEFAULT[part]
        else:
            # A project has added this part, and will want agents to use its commands.
            is_offered = True
        if is_offered:
            selected[name] = command
    return selected


def part_of(command: Any) -> str:
    """Return the part of the tool that contains a command, such as "state".

    For a command of the kit, which all parts are built on, return "kit".
    """
    # The module is, for example, sampletool.state.commands.task.add.
    module: str = command.callback.__module__
    if module.startswith(f"{KIT}."):
        return KIT_FOLDER_NAME
    return module.removeprefix(f"{PACKAGE}.").split(".")[0]


def _parts_with_commands() -> list[str]:
    """Return the names of all parts that have commands. They include "kit"."""
    names = []
    for package in command_packages():
        # The packages of all other parts have a name such as sampletool.state.commands.
        if package.startswith(f"{KIT}."):
            names.append(KIT_FOLDER_NAME)
        else:
            _package, part, _commands = package.split(".")
            names.append(part)
    return names
