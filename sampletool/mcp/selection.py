"""Which commands a server offers as tools.

A client puts the list of all tools into the context of its model, and an agent pays for it in every
conversation. So a server offers only what agents need for their daily work, unless it is started
with `--only` or `--all`. `make bench` prints the size of each list.
"""

from collections.abc import Collection, Mapping
from typing import Any

from ..kit.contract.errors import did_you_mean
from ..kit.contract.text import quoted
from ..kit.part_discovery import KIT_FOLDER_NAME, command_packages
from ..kit.program import KIT, PACKAGE

OFFERED_BY_DEFAULT: Mapping[str, tuple[str, ...]] = {
    # Find out where the agent is and what it may use. Read and change settings.
    "kit": ("status", "config get", "config list", "config set", "lock list"),
    # Do the work of a project. An agent runs these three again and again.
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
"""The commands of each part that are tools by default. Of any other part, all commands are."""


def parse_parts(text: str) -> list[str]:
    """Return the names of parts in a text such as `state,sample`.

    Raise ValueError, with a message for the user, if there is no such part, or if the part has no
    commands.
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
    """Return the commands to offer, by their names.

    These are the ones of OFFERED_BY_DEFAULT, or all commands of the parts in `only`, or all.
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
            # A part that a project has added: its author wants its commands to be used.
            is_offered = True
        if is_offered:
            selected[name] = command
    return selected


def part_of(command: Any) -> str:
    """Return the name of the part that a command belongs to, or "kit"."""
    # The module is, for example, sampletool.state.commands.task.add.
    module: str = command.callback.__module__
    if module.startswith(f"{KIT}."):
        return KIT_FOLDER_NAME
    return module.removeprefix(f"{PACKAGE}.").split(".")[0]


def _parts_with_commands() -> list[str]:
    """Return the names of the kit and of the parts that have commands."""
    names = []
    for package in command_packages():
        # A package is the kit's, or it is named PACKAGE.PART.commands.
        if package.startswith(f"{KIT}."):
            names.append(KIT_FOLDER_NAME)
        else:
            _package, part, _commands = package.split(".")
            names.append(part)
    return names
