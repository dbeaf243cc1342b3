"""What the commands that read or change settings share."""

from collections.abc import Sequence
from typing import Annotated

import typer

from ...completion import offering
from ...context import Context
from ...contract.errors import InvalidValues, Mistake
from ...part_discovery import has_command
from ...program import PROGRAM, WORKSPACE_FILE
from ...settings.known import find_current_name, find_setting, fixed_values
from ...settings.precedence import Key, Scope, Settings
from ...settings.toml_key import parse_key, show_key


def settings_of(context: Context, in_user_file: bool) -> Settings:
    """Return all settings of this command, or with --global only those in the user's file."""
    if in_user_file:
        return Settings(lambda: None, files_only=True, warn=context.warn)
    return context.settings


def scope_to_change(context: Context, in_user_file: bool) -> Scope:
    """Return the settings file to change: the workspace's, or the user's.

    Outside of a workspace this is the user's file. Warn if the user did not ask for that.
    """
    scope = settings_of(context, in_user_file).scopes[0]
    if scope.name == "user" and not in_user_file:
        message = (
            f"Not in a workspace: there is no {WORKSPACE_FILE} here or in a parent directory. "
            f"Using your personal settings in {scope.path} instead. "
            f"To do this without a warning, pass --global. {_how_to_create_a_workspace()}"
        )
        context.warn("USER_SETTINGS", message)
    return scope


def _how_to_create_a_workspace() -> str:
    """Return a sentence with the command for that: `init`, if a part has it."""
    command = f"touch {WORKSPACE_FILE}"
    if has_command("init"):
        command = f"{PROGRAM} init"
    return f"To create a workspace here, run `{command}`."


def read_key(text: str) -> Key:
    """Return the parts of a dotted key. Raise InvalidValues if the text is not one."""
    try:
        return parse_key(text)
    except ValueError as error:
        hint = getattr(error, "suggestion", None)
        raise InvalidValues(Mistake("KEY", "INVALID_VALUE", str(error), text, hint)) from error


def read_current_key(context: Context, text: str) -> Key:
    """Return the parts of a dotted key. Replace the former name of a setting, with a warning.

    Raise InvalidValues if the text is not a key.
    """
    key = read_key(text)
    name = show_key(key)
    current_name = find_current_name(name)
    if current_name == name:
        return key
    warn_of_former_name(context, name, current_name)
    return read_key(current_name)


def warn_of_former_name(context: Context, former_name: str, name: str) -> None:
    """Warn that the command line has the former name of a setting."""
    context.warn("DEPRECATED", f"{former_name} is now called {name}. Use {name} instead.")


@offering
def setting_keys(context: Context) -> list[str]:
    """Return the keys that a shell can complete."""
    return context.settings.names()


def keys_or_values(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return what a shell can complete in `config set`: keys, and the values of some settings."""
    words = ctx.params.get("words") or []

    def names(context: Context) -> list[str]:
        return possible_assignments(words, incomplete, context.settings.names())

    return offering(names)(ctx=ctx, incomplete=incomplete)


def possible_assignments(words: Sequence[str], incomplete: str, keys: list[str]) -> list[str]:
    """Return the words that can follow `config set` and these words.

    `incomplete` is what the user has typed of the next word.
    """
    key, separator, _ = incomplete.partition("=")
    if separator:
        return [f"{key}={value}" for value in _fixed_values_of(key)]
    # bash makes `key=value` three words, and the middle one is the sign.
    words_without_signs = [word for word in words if word != "="]
    if words_without_signs and find_setting(words_without_signs[-1]) is not None:
        return _fixed_values_of(words_without_signs[-1])
    return keys


def _fixed_values_of(key: str) -> list[str]:
    """Return the values of a setting that has a fixed set of them, or []."""
    setting = find_setting(key)
    if setting is None:
        return []
    return fixed_values(setting)


ReadUserFileOption = Annotated[
    bool,
    typer.Option("--global", help="Look only in your personal settings file."),
]
ChangeUserFileOption = Annotated[
    bool,
    typer.Option(
        "--global",
        help=f"Change your personal settings, even in a directory with {WORKSPACE_FILE}.",
    ),
]
IfVersionOption = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="Change the file only if it still has this version, as shown by `config get --json`.",
    ),
]
