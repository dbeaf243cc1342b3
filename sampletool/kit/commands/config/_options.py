"""What the commands of the settings share: their specs and parameters."""

from typing import Annotated

import typer

from ...completion import offering
from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import InvalidValues, KeyNotFound, Mistake, VersionConflict
from ...program import WORKSPACE_FILE
from ...settings.precedence import Key, Scope, Settings
from ...settings.toml_key import parse_key

reads_settings = CommandSpec(effect="nothing", errors=(KeyNotFound,), reads=("settings",))
changes_settings = CommandSpec(
    effect="settings", errors=(VersionConflict,), locks=("settings file",), reads=("settings",)
)


def settings_of(context: Context, in_user_file: bool) -> Settings:
    """What applies to this call; or what the user's own file says, and nothing else."""
    return Settings(lambda: None, files_only=True) if in_user_file else context.settings


def scope_to_change(context: Context, in_user_file: bool) -> Scope:
    """The workspace's settings; outside one, or if asked for, the user's."""
    scope = settings_of(context, in_user_file).scopes[0]
    if scope.name == "user" and not in_user_file:
        reason = f"There is no {WORKSPACE_FILE} here or above, so this is about your own settings in {scope.path}."
        context.warn("USER_SETTINGS", reason)
    return scope


def read_key(text: str) -> Key:
    try:
        return parse_key(text)
    except ValueError as error:
        hint = getattr(error, "suggestion", None)
        raise InvalidValues(Mistake("KEY", "INVALID_VALUE", str(error), text, hint)) from error


@offering
def setting_keys(context: Context) -> list[str]:
    return context.settings.names()


GlobalOption = Annotated[bool, typer.Option("--global", help="Use your own settings, also inside a workspace.")]
IfVersionOption = Annotated[str | None, typer.Option(metavar="VERSION", help="Only if the version is still this one.")]
