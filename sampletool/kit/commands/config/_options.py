"""What the commands of the settings share: their specs and parameters, and a setting as an answer tells it."""

from datetime import date, time
from math import isfinite
from typing import Annotated, Any, NamedTuple

import typer

from ...completion import offering
from ...context import Context
from ...contract.answer import UNTRUSTED
from ...contract.command_spec import CommandSpec
from ...contract.errors import InvalidValues, KeyNotFound, Mistake, ToolError, VersionConflict
from ...contract.redaction import MASK, is_secret, redact
from ...contract.render import value_text
from ...program import WORKSPACE_FILE
from ...settings.known import all_known
from ...settings.precedence import Key, Scope, Settings, SourceName
from ...settings.toml_key import parse_key, show_key

reads_settings = CommandSpec(effect="nothing", errors=(KeyNotFound,), reads=("settings",))
changes_settings = CommandSpec(
    effect="settings", errors=(VersionConflict,), locks=("settings file",), reads=("settings",)
)


def settings_of(context: Context, in_user_file: bool) -> Settings:
    """What applies to this call; or what the user's own file says, and nothing else."""
    return Settings(lambda: None) if in_user_file else context.settings


def scope_to_change(context: Context, in_user_file: bool) -> Scope:
    """The workspace's settings; outside one, or if asked for, the user's."""
    scope = settings_of(context, in_user_file).scopes[0]
    if scope.name == "user" and not in_user_file:
        reason = f"There is no {WORKSPACE_FILE} here or above, so this is about your own settings in {scope.path}."
        context.warn("USER_SETTINGS", reason)
    return scope


class Setting(NamedTuple):
    key: str
    value: Annotated[Any, UNTRUSTED]
    source: SourceName
    version: str
    """Of the file that `config set` would change: pass it to --if-version."""

    def lines(self) -> list[str]:
        return [value_text(self.value)]


def show(settings: Settings, name: str, *, reveal: bool) -> Setting:
    key = read_key(name)
    source = settings.find(key)
    return Setting(show_key(key), shown(key, source.value, reveal=reveal), source.name, settings.version)


def shown(key: Key, value: Any, *, reveal: bool) -> Any:
    """The value as an answer carries it: secrets masked, and what JSON has no form for as TOML writes it."""
    if isinstance(value, dict):
        return {name: shown((*key, name), member, reveal=reveal) for name, member in value.items()}
    if not reveal and is_secret(show_key(key)):
        return MASK
    if isinstance(value, list):
        return [shown(key, member, reveal=reveal) for member in value]
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return redact(value) if isinstance(value, str) and not reveal else value


def read_key(text: str) -> Key:
    try:
        return parse_key(text)
    except ValueError as error:
        raise InvalidValues(mistake_in_key(text, error)) from error


def mistake_in_key(text: str, error: ValueError) -> Mistake:
    return Mistake("KEY", "INVALID_VALUE", str(error), text, getattr(error, "suggestion", None))


@offering
def setting_keys(context: Context) -> list[str]:
    try:
        return context.settings.names()
    except (ToolError, OSError):
        return list(all_known())


KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="A dotted key.", autocompletion=setting_keys)]
GlobalOption = Annotated[bool, typer.Option("--global", help="Use your own settings, also inside a workspace.")]
RevealOption = Annotated[bool, typer.Option("--reveal", help="Show the values of secret keys too.")]
IfVersionOption = Annotated[str | None, typer.Option(metavar="VERSION", help="Only if the version is still this one.")]
