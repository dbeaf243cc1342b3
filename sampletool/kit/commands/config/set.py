"""Set one key, or several in one change. Everything else in the file stays as it is."""

from collections.abc import Iterable
from typing import Annotated, NamedTuple

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import InvalidValues, Mistake, VersionConflict, did_you_mean
from ...contract.text import is_secret
from ...global_options import AllowEmptyOption, DryRunOption
from ...program import PROGRAM
from ...settings.change import Changed, set_values
from ...settings.known import all_settings, check, find_current_name, find_setting
from ...settings.precedence import Key
from ...settings.toml_key import TomlValue, parse_value, show_key
from ...stdin import read_stdin
from ._options import (
    ChangeUserFileOption,
    IfVersionOption,
    keys_or_values,
    read_key,
    scope_to_change,
    warn_of_former_name,
)

spec = CommandSpec(
    effect="settings",
    errors=(VersionConflict,),
    locks=("settings file",),
    reads=("settings", "stdin"),
    stdin_arguments=("words",),
    destroys="The previous value of each key.",
    examples=(
        "config set key1 val1",
        "config set jobs=4 lock_timeout=30s",
        "echo s3cret | config set api.token -",
    ),
)

_MAX_STDIN_BYTES = 1024 * 1024
_ARGV_WARNING = (
    "Other users of this machine can see secrets on a command line. "
    "To prevent this, pass `-` as VALUE and pipe the secret into the command."
)
_SIMILAR = 0.75
"""How similar a key must be to a setting of the tool to be taken for a misspelling of it."""


class Assignment(NamedTuple):
    """A key and its new value, as read from one argument."""

    key: Key
    value: TomlValue
    former_name: str | None
    """The name of the setting on the command line, if that is not its current name."""


def read_arguments(arguments: list[str], *, as_text: bool) -> list[Assignment]:
    """Read either `KEY VALUE`, or any number of `KEY=VALUE`.

    Raise InvalidValues with the mistakes of all arguments.
    """
    if _is_one_pair(arguments):
        name, text = arguments
        return [_read_pair(name, text, as_text=as_text)]

    assignments: dict[Key, Assignment] = {}
    mistakes: list[Mistake] = []
    for argument in arguments:
        name, separator, text = argument.partition("=")
        if not separator:
            mistakes.append(_missing_value(argument))
            continue
        try:
            assignment = _read_pair(name, text, as_text=as_text)
        except InvalidValues as error:
            mistakes += error.mistakes
            continue
        if assignment.key in assignments:
            mistakes.append(_set_twice(name))
            continue
        assignments[assignment.key] = assignment
    if mistakes:
        raise InvalidValues(*mistakes)
    return list(assignments.values())


def _is_one_pair(arguments: list[str]) -> bool:
    return len(arguments) == 2 and "=" not in arguments[0]


def _read_pair(written_key: str, written_value: str, *, as_text: bool) -> Assignment:
    """Read a key and its value. Raise InvalidValues if one of them is wrong."""
    key = read_key(written_key)
    name = show_key(key)
    former_name = None
    present_name = find_current_name(name)
    if present_name != name:
        # The setting was renamed. The file gets its present name.
        former_name = name
        key = read_key(present_name)
    value = written_value if as_text else parse_value(written_value)
    is_setting_of_tool = find_setting(present_name) is not None
    if is_setting_of_tool:
        check(present_name, value, "the command line")
    if not _is_utf8(written_value):
        message = f"The value of {written_key} is not UTF-8 text"
        raise InvalidValues(Mistake(written_key, "INVALID_VALUE", message))
    return Assignment(key, value, former_name)


def _set_twice(written_name: str) -> Mistake:
    message = f"{written_name} is set twice"
    hint = "Set each key only once."
    return Mistake("KEY", "INVALID_VALUE", message, written_name, hint)


def _missing_value(argument: str) -> Mistake:
    hint = (
        f"Use `{PROGRAM} config set KEY VALUE` or `{PROGRAM} config set KEY=VALUE...`. "
        "If a value contains spaces, put quotes around it."
    )
    return Mistake("VALUE", "MISSING", f"{argument} has no value", argument, hint)


def _is_utf8(text: str) -> bool:
    """Return whether the text is UTF-8. A byte that is not becomes a lone surrogate in Python."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _warn_about_names(context: Context, assignments: Iterable[Assignment]) -> None:
    """Warn of former names, of deprecated settings and of keys that may be misspelled."""
    for assignment in assignments:
        name = show_key(assignment.key)
        if assignment.former_name is not None:
            warn_of_former_name(context, assignment.former_name, name)
        known = find_setting(name)
        if known is None:
            _warn_if_misspelled(context, name)
        elif known.get("deprecated"):
            context.warn("DEPRECATED", f"{name} is deprecated. {known['deprecated']}")


def _warn_if_misspelled(context: Context, name: str) -> None:
    """Warn if a key of the user's own resembles a setting of the tool."""
    hint = did_you_mean(name, list(all_settings()), nearness=_SIMILAR)
    if hint:
        message = f"{name} is not a built-in setting, so its value is not checked. {hint}"
        context.warn("UNKNOWN_KEY", message)


def _warn_about_secrets(context: Context, assignments: Iterable[Assignment]) -> None:
    """Warn if a secret is on the command line."""
    for assignment in assignments:
        if is_secret(show_key(assignment.key)):
            context.warn("SECRET_IN_ARGV", _ARGV_WARNING)
            return


def _read_value_from_stdin(context: Context, *, allow_empty: bool) -> str:
    """Return what stdin contains, without the end of the last line."""
    content = read_stdin(context.signals, _MAX_STDIN_BYTES, allow_empty=allow_empty)
    return content.removesuffix("\n").removesuffix("\r")


def command(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY VALUE | KEY=VALUE...",
            help="Keys and their new values. Use `-` to read one value from stdin.",
            autocompletion=keys_or_values,
        ),
    ],
    in_user_file: ChangeUserFileOption = False,
    as_text: Annotated[
        bool,
        typer.Option("--string", help="Store every value as text, even numbers."),
    ] = False,
    allow_empty: AllowEmptyOption = False,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Set one or more keys.

    Outside of a workspace, this changes your personal settings. Several keys change together, or
    none does. Values of built-in settings are checked. A key of your own can have any value. A
    value such as 5, true or [1, 2] is stored as TOML, and anything else as text.
    """
    context: Context = ctx.obj
    arguments = words
    is_on_stdin = _is_one_pair(words) and words[1] == "-"
    if is_on_stdin:
        value = _read_value_from_stdin(context, allow_empty=allow_empty)
        arguments = [words[0], value]
    assignments = read_arguments(arguments, as_text=as_text)
    _warn_about_names(context, assignments)
    if not is_on_stdin:
        _warn_about_secrets(context, assignments)
    values = {assignment.key: assignment.value for assignment in assignments}
    scope = scope_to_change(context, in_user_file)
    with context.editing(scope.path, dry_run=dry_run) as file:
        return set_values(file, scope, values, if_version)
