"""The whole command tree as data, for programs that call this one."""

from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from ..command_folder import CommandFolder
from ..contract.command_spec import CommandSpec
from ..contract.errors import CommandNotFound, did_you_mean
from ..contract.exit_status import category
from ..contract.manifest import describe_command, describe_errors
from ..global_options import described_options
from ..program import PROGRAM, variable
from ..settings.known import all_known

spec = CommandSpec(effect="nothing", errors=(CommandNotFound,), examples=("manifest", "manifest config set"))

_ENVIRONMENT = {
    variable("SESSION_ID"): "As --session-id.",
    variable("TIMEOUT"): "As --timeout.",
    variable("TRACE_ID"): "Told in meta.trace_id.",
    variable("CONFIG_DIR"): "Where your own settings lie.",
    variable("STATE_DIR"): "Where the store and the locks of outputs lie outside a workspace.",
    "TMPDIR": "Where sessions lie.",
    "CI": "Set: answers are JSON also at a terminal.",
    "NO_COLOR": "Set: no colour.",
    "FORCE_COLOR": "Set: colour also in a pipe.",
}


class Manifest(NamedTuple):
    commands: list[dict[str, Any]]
    options: list[dict[str, Any]]
    """What every command takes, before or after its name."""
    exit_statuses: dict[str, str]
    error_codes: dict[str, dict[str, Any]]
    """Every code that an answer of these commands may carry."""
    settings: dict[str, dict[str, str]]
    """A flag wins over the environment, that over the workspace's file, that over yours, that over the default."""
    environment: dict[str, str]
    """The variables that count besides those of the settings."""

    def lines(self) -> list[str]:
        return [f"{command['command']:<16} {command['summary']}" for command in self.commands]


def find_commands(folder: CommandFolder, above: str = "") -> Iterator[tuple[str, Any]]:
    """Every command below a folder, in the order of their names."""
    for name in folder.commands:
        command = folder.get_command(None, name)
        if isinstance(command, CommandFolder):
            yield from find_commands(command, f"{above}{name} ")
        else:
            yield f"{above}{name}", command


def command(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND...]", help="Only this one.")] = None,
) -> Manifest:
    """Describe every command as JSON, for programs.

    Options with their types and defaults, effect, locks, exit statuses, error codes, and the schema of the data.
    """
    folder = ctx.find_root().command
    assert isinstance(folder, CommandFolder)
    known = dict(find_commands(folder))
    wanted = " ".join(words or [])
    shown = {name: found for name, found in known.items() if f"{name} ".startswith(f"{wanted} ".lstrip())}
    if not shown:
        raise CommandNotFound(command=wanted, suggestion=did_you_mean(wanted, list(known)))
    commands = [describe_command(name, found, found.usage(f"{PROGRAM} {name}")) for name, found in shown.items()]
    specs = [found.spec for found in shown.values()]
    statuses = sorted({status for spec in specs for status in spec.exit_statuses()})
    categories = {str(status): category(status) for status in statuses}
    settings = {
        name: {"environment": variable(name), "default": known.default, "help": known.help}
        for name, known in all_known().items()
    }
    return Manifest(commands, described_options(), categories, describe_errors(specs), settings, _ENVIRONMENT)
