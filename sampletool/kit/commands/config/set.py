"""Set one key or several at once, atomically, keeping everything else in the file as it is."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from ...context import Context
from ...contract.errors import InvalidValues, Mistake, did_you_mean
from ...contract.redaction import is_secret
from ...global_options import DryRunOption
from ...program import PROGRAM
from ...safety.stdin import read_stdin
from ...safety.toml_file import TomlText
from ...settings.change import Change, Changed, change_settings
from ...settings.known import all_known, check, find_known
from ...settings.precedence import Key, Scope
from ...settings.toml_edit import set_value
from ...settings.toml_key import get, has, parse_key, parse_value, show_key
from ._options import GlobalOption, IfVersionOption, changes_settings

spec = changes_settings(
    "config set key1 val1",
    "config set jobs=4 lock_timeout=30s",
    "config set api.token -",
)

_STDIN_LIMIT_BYTES = 1024 * 1024


def set_values(values: dict[Key, Any], scope: Scope, before: TomlText) -> tuple[str, list[Change]]:
    """The text with them, and what becomes of each."""
    text, document = before.text, before.document
    changes = []
    for key, value in values.items():
        path = scope.document_key(key)
        found = get(document, path) if has(document, path) else None
        if type(found) is type(value) and found == value:
            changes.append(Change(show_key(key), "unchanged"))
        else:
            text = set_value(text, path, value)
            changes.append(Change(show_key(key), "created" if found is None else "updated"))
    return text, changes


def read_arguments(words: list[str], *, as_text: bool, read_stdin: Callable[[], str]) -> dict[Key, Any]:
    """KEY VALUE, or KEY=VALUE several times; every mistake of all of them at once."""
    if len(words) == 2 and "=" not in words[0]:
        pairs = [(words[0], read_stdin() if words[1] == "-" else words[1])]
    elif missing := _missing(words):
        raise InvalidValues(*missing)
    else:
        pairs = [(name, text) for name, _, text in (word.partition("=") for word in words)]
    values: dict[Key, Any] = {}
    mistakes: list[Mistake] = []
    for name, text in pairs:
        try:
            key = parse_key(name)
            value = text if as_text else parse_value(text)
            text.encode()
            if find_known(show_key(key)):
                check(show_key(key), value, "the command line")
            if key in values:
                raise ValueError(f"{name} is given twice")
            values[key] = value
        except InvalidValues as error:
            mistakes += error.mistakes
        except UnicodeEncodeError:
            mistakes.append(Mistake(name, "INVALID_VALUE", f"the value of {name} is not UTF-8 text"))
        except ValueError as error:
            mistakes.append(Mistake("KEY", "INVALID_VALUE", str(error), name))
    if mistakes:
        raise InvalidValues(*mistakes)
    return values


def _missing(words: list[str]) -> list[Mistake]:
    """The words that are no KEY=VALUE, where they have to be."""
    if len(words) > 2 and not any("=" in word for word in words):
        hint = "Put quotes around a value of several words; give several keys as KEY=VALUE."
        return [
            Mistake(
                "VALUE", "INVALID_VALUE", f"{words[0]} is followed by {len(words) - 1} values, not one", suggestion=hint
            )
        ]
    return [
        Mistake(
            "VALUE",
            "MISSING",
            f"{word} has no value",
            word,
            f"Write `{PROGRAM} config set {word} VALUE` or {word}=VALUE.",
        )
        for word in words
        if "=" not in word
    ]


def _warn(context: Context, values: dict[Key, Any], *, are_in_argv: bool) -> None:
    names = [show_key(key) for key in values]
    for name in names:
        if not find_known(name) and (hint := did_you_mean(name, list(all_known()), nearness=0.8)):
            context.warn("UNKNOWN_KEY", f"{name} is not a setting of the tool itself; it is kept. {hint}")
    if are_in_argv and any(map(is_secret, names)):
        context.warn("SECRET_IN_ARGV", "Other users can see a command line; pass `-` as VALUE and the secret on stdin.")


def command(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="KEY VALUE | KEY=VALUE...", help="`-` reads VALUE from stdin.")],
    in_user_file: GlobalOption = False,
    as_text: Annotated[bool, typer.Option("--string", help="Take every value as text.")] = False,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Set one key, or several in one change.

    A value that is TOML and would print back as typed is kept as that, any other as text. Any dotted key may be set;
    the settings of the tool itself are checked.
    """
    context: Context = ctx.obj

    def read_value() -> str:
        return read_stdin(context.signals, _STDIN_LIMIT_BYTES).removesuffix("\n").removesuffix("\r")

    values = read_arguments(words, as_text=as_text, read_stdin=read_value)
    _warn(context, values, are_in_argv=words[-1] != "-")
    edit = partial(set_values, values)
    return change_settings(context, edit, in_user_file=in_user_file, if_version=if_version, dry_run=dry_run)
