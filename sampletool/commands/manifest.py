"""The whole command tree as data, for programs that call this one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sampletool.command_folder import CommandFolder
from sampletool.contract.errors import CommandNotFound, ToolError
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.manifest import describe_command, describe_param
from sampletool.contract.promise import Promise
from sampletool.options import everywhere

promise = Promise(
    effect="nothing", ends_with=(ExitStatus.NOT_FOUND,), examples=("tool manifest", "tool manifest config set")
)


@dataclass(frozen=True)
class Manifest:
    commands: list[dict[str, Any]]
    options: list[dict[str, Any]]
    """What every command takes, before or after its name."""
    exit_statuses: dict[str, str]
    error_codes: dict[str, int]
    """Every code that an answer may carry, with its exit status; 128 and the signal's number for INTERRUPTED."""

    def lines(self) -> list[str]:
        return [f"{command['command']:<16} {command['summary']}" for command in self.commands]


def describe(ctx: typer.Context, folder: CommandFolder, above: str = "") -> Iterator[dict[str, Any]]:
    """Every command below a folder, in the order of their names."""
    for name in folder.list_commands(ctx):
        command = folder.get_command(ctx, name)
        if isinstance(command, CommandFolder):
            yield from describe(ctx, command, f"{above}{name} ")
        else:
            yield describe_command(f"{above}{name}", command)


def command(
    ctx: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND...]", help="Only this one.")] = None,
) -> Manifest:
    """Describe every command as JSON, for programs.

    Options with their types and defaults, effect, locks, exit statuses, error codes, and the schema of the data.
    """
    folder = ctx.find_root().command
    assert isinstance(folder, CommandFolder)
    commands = list(describe(ctx, folder))
    if words:
        wanted = " ".join(words)
        known = [entry["command"] for entry in commands]
        commands = [entry for entry in commands if f"{entry['command']} ".startswith(f"{wanted} ")]
        if not commands:
            raise CommandNotFound(wanted, known)
    statuses = {str(int(status)): status.category for status in ExitStatus}
    return Manifest(commands, [describe_param(option) for option in everywhere()], statuses, _error_codes())


def _error_codes(above: type[ToolError] = ToolError) -> dict[str, int]:
    """The commands have been imported by now, and with them every error that they can end with."""
    found: dict[str, int] = {}
    for kind in above.__subclasses__():
        if hasattr(kind, "code"):
            found[kind.code] = int(getattr(kind, "exit_status", 128))
        found |= _error_codes(kind)
    return dict(sorted(found.items()))
