"""Set one key or several at once, atomically, keeping everything else in the file as it is."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from ...context import Context
from ...contract.errors import InvalidValues, Mistake, did_you_mean
from ...contract.text import is_secret
from ...global_options import AllowEmptyOption, DryRunOption
from ...program import PROGRAM
from ...settings.change import Changed, set_values
from ...settings.known import all_known, check, find_known
from ...settings.precedence import Key
from ...settings.toml_key import parse_value, show_key
from ._options import GlobalOption, IfVersionOption, changes_settings, read_key, scope_to_change, setting_keys

spec = replace(
    changes_settings,
    reads=("settings", "stdin"),
    destroys="The value that a key had.",
    examples=("config set key1 val1", "config set jobs=4 lock_timeout=30s", "echo s3cret | config set api.token -"),
)


def read_arguments(words: list[str], *, as_text: bool) -> dict[Key, Any]:
    """KEY VALUE, or KEY=VALUE several times; every mistake of all of them at once."""
    if not _is_one_pair(words) and (alone := [word for word in words if "=" not in word]):
        hint = f"Write `{PROGRAM} config set KEY VALUE`, with quotes around a VALUE of several words, or KEY=VALUE..."
        raise InvalidValues(*(Mistake("VALUE", "MISSING", f"{word} has no value", word, hint) for word in alone))
    pairs = [words] if _is_one_pair(words) else [word.split("=", 1) for word in words]
    values: dict[Key, Any] = {}
    mistakes: list[Mistake] = []
    for name, text in pairs:
        try:
            key, value = read_key(name), text if as_text else parse_value(text)
            text.encode()
            if find_known(show_key(key)):
                check(show_key(key), value, "command line")
            if key in values:
                mistakes.append(Mistake("KEY", "INVALID_VALUE", f"{name} is given twice", name))
            values[key] = value
        except InvalidValues as error:
            mistakes += error.mistakes
        except UnicodeEncodeError:
            mistakes.append(Mistake(name, "INVALID_VALUE", f"the value of {name} is not UTF-8 text"))
    if mistakes:
        raise InvalidValues(*mistakes)
    return values


def _is_one_pair(words: list[str]) -> bool:
    return len(words) == 2 and "=" not in words[0]


def _warn(context: Context, values: dict[Key, Any], *, are_in_argv: bool) -> None:
    names = [show_key(key) for key in values]
    for name in names:
        if not find_known(name) and (hint := did_you_mean(name, list(all_known()), nearness=0.75)):
            context.warn("UNKNOWN_KEY", f"{name} is not a setting of the tool itself; it is kept. {hint}")
    if are_in_argv and any(map(is_secret, names)):
        context.warn("SECRET_IN_ARGV", "Other users can see a command line; pass `-` as VALUE and the secret on stdin.")


def command(
    ctx: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY VALUE | KEY=VALUE...", help="`-` reads VALUE from stdin.", autocompletion=setting_keys
        ),
    ],
    in_user_file: GlobalOption = False,
    as_text: Annotated[bool, typer.Option("--string", help="Take every value as text.")] = False,
    allow_empty: AllowEmptyOption = False,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Set one key, or several in one change.

    A value that is TOML and would print back as typed is kept as that, any other as text. Any dotted key may be set;
    the settings of the tool itself are checked.
    """
    context: Context = ctx.obj
    is_on_stdin = _is_one_pair(words) and words[1] == "-"
    if is_on_stdin:
        from ...stdin import read_stdin

        value = read_stdin(context.signals, 1024 * 1024, allow_empty=allow_empty)
        words = [words[0], value.removesuffix("\n").removesuffix("\r")]
    values = read_arguments(words, as_text=as_text)
    _warn(context, values, are_in_argv=not is_on_stdin)
    scope = scope_to_change(context, in_user_file)
    with context.editing(scope.path, dry_run=dry_run) as file:
        return set_values(file, scope, values, if_version)
