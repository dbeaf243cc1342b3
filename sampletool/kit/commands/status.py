"""Show where a command would run and what it would use: one small response for a newcomer."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from ..context import Context
from ..contract.command_spec import CommandSpec
from ..contract.lock_held import describe_process
from ..contract.response import UNTRUSTED, value_text
from ..contract.table import Line
from ..part_discovery import offered
from ..places import all_locks, lock_name
from ..safety.lock_owners import find_held_locks
from ..settings.known import all_settings
from ._used_paths import UsedPath
from .config._showing import value_to_show

spec = CommandSpec(
    effect="nothing",
    reads=("settings", "workspace", "sessions", "locks"),
    examples=("status",),
)

_MAX_LOCKS = 10
"""How many locks are shown. `lock list` shows all of them."""


@dataclass(frozen=True)
class ChangedSetting:
    """A setting of the tool that does not have its default value."""

    key: str
    value: Annotated[Any, UNTRUSTED]
    source: str


@dataclass(frozen=True)
class RunningCommand:
    """A command that holds a lock."""

    lock: str
    command: str | None
    process: str
    """The pid, and since when it has held the lock."""


@dataclass(frozen=True)
class Status:
    """Where the tool would run, and what it would use."""

    directory: str
    workspace: str | None
    settings_file: UsedPath
    """The file that `config set` changes."""
    session_id: str | None
    """None means that each command gets a session of its own."""
    places: dict[str, str]
    """What the parts use, such as the store."""
    settings: list[ChangedSetting]
    running: list[RunningCommand]
    """The first ten."""
    running_count: int

    def lines(self) -> list[Line]:
        """Return a line for each fact."""
        workspace = self.workspace or "none: there is no workspace here"
        lines: list[Line] = [
            ("directory", self.directory),
            ("workspace", workspace),
            (self.settings_file.name, self.settings_file.path),
            ("session", self.session_id or "a new one for each command"),
        ]
        lines += self.places.items()
        for setting in self.settings:
            shown = f"{setting.key} = {value_text(setting.value)} ({setting.source})"
            lines.append(("setting", shown))
        if not self.running:
            lines.append(("running", "nothing"))
        for each in self.running:
            command = each.command or "a command"
            lines.append(("running", f"{command}, {each.process}, holds the lock {each.lock}"))
        return lines


def _settings_file(context: Context) -> UsedPath:
    scope = context.settings.scopes[0]
    name = "settings of the workspace" if scope.name == "project" else "personal settings"
    return UsedPath(name=name, path=str(scope.path), exists=scope.path.exists())


def _changed_settings(context: Context) -> list[ChangedSetting]:
    """Return the settings that someone has changed, without those of this command itself."""
    changed = []
    for name in sorted(all_settings()):
        source = context.settings.find((name,))
        if source.name not in ("default", "flag"):
            shown_value = value_to_show((name,), source.value, reveal=False)
            changed.append(ChangedSetting(name, shown_value, source.name))
    return changed


def _running_commands(context: Context) -> list[RunningCommand]:
    """Return the commands that hold a lock here."""
    running = []
    lock_paths = all_locks(context.workspace_or_none)
    for path, owners in find_held_locks(lock_paths, context.signals.check):
        for holder in owners.holders:
            command = RunningCommand(lock_name(path), holder.command, describe_process(holder))
            running.append(command)
    return running


def _places_of_parts(context: Context) -> dict[str, str]:
    places: dict[str, str] = {}
    for part in offered("status"):
        places |= part.places(context)
    return places


def command(ctx: typer.Context) -> Status:
    """Show where you are, and what is running.

    The output has the workspace, the settings, the session, and the commands that hold a lock. Only
    settings that differ from their defaults are shown. To see all of them, run `config list`. To
    check whether everything works, run `doctor`.
    """
    context: Context = ctx.obj
    workspace = context.workspace_or_none
    running = _running_commands(context)
    return Status(
        directory=str(context.cwd),
        workspace=None if workspace is None else str(workspace),
        settings_file=_settings_file(context),
        session_id=context.given_session_id,
        places=_places_of_parts(context),
        settings=_changed_settings(context),
        running=running[:_MAX_LOCKS],
        running_count=len(running),
    )
