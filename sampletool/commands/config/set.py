"""Set one key or several at once, atomically, keeping everything else in the file as it is."""

import tomllib
from math import isfinite
from typing import Annotated, Any

import typer

from sampletool.contract.errors import InvalidValues, Mistake, did_you_mean
from sampletool.contract.promise import Promise
from sampletool.contract.redaction import is_secret
from sampletool.safety.stdin import read_stdin
from sampletool.safety.toml_file import TomlText
from sampletool.settings import KNOWN, Key, Scope, check
from sampletool.settings.toml_edit import set_value
from sampletool.settings.toml_key import get, has, parse_key, show_key
from sampletool.settings_change import CHANGING, Change, Changed, change_settings, scope_to_change
from sampletool.wiring import Wiring

promise = Promise(
    effect="settings",
    ends_with=CHANGING,
    locks=("settings file",),
    examples=("tool config set key1 val1", "tool config set jobs=4 lock_timeout=30s", "tool config set api.token -"),
)

_STDIN_LIMIT_BYTES = 1024 * 1024
_EXACT_INTEGER = 2**53 - 1
"""Beyond it JSON readers round, so a larger number stays text."""


def set_values(
    wiring: Wiring, scope: Scope, values: dict[Key, Any], *, if_version: str | None = None, dry_run: bool = False
) -> Changed:
    """Everything is set, or nothing."""

    def edit(before: TomlText) -> tuple[str, list[Change]]:
        text, changes = before.text, []
        document = before.document
        for key, value in values.items():
            path = scope.document_key(key)
            exists = has(document, path)
            if exists and type(get(document, path)) is type(value) and get(document, path) == value:
                changes.append(Change(show_key(key), "unchanged"))
            else:
                text = set_value(text, path, value)
                changes.append(Change(show_key(key), "updated" if exists else "created"))
        return text, changes

    return change_settings(wiring, scope, edit, if_version=if_version, dry_run=dry_run)


def read_arguments(words: list[str], *, as_text: bool, read_stdin: Any) -> dict[Key, Any]:
    """KEY VALUE, or KEY=VALUE several times; every mistake of all of them at once."""
    if len(words) == 2 and "=" not in words[0]:
        pairs = [(words[0], read_stdin() if words[1] == "-" else words[1])]
    else:
        pairs = []
        missing = [word for word in words if "=" not in word]
        if missing:
            raise InvalidValues(*(_no_value(word) for word in missing))
        for word in words:
            name, _, text = word.partition("=")
            pairs.append((name, text))
    values: dict[Key, Any] = {}
    mistakes: list[Mistake] = []
    for name, text in pairs:
        try:
            key = parse_key(name)
            value = text if as_text else parse_value(text)
            text.encode()
            if show_key(key) in KNOWN:
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


def parse_value(text: str) -> Any:
    """The TOML value that prints back as typed and that JSON can carry; else the text itself."""
    try:
        read = tomllib.loads(f"value = {text}", parse_float=_exact_float)
    except (ValueError, RecursionError):
        return text
    if read.keys() != {"value"} or "\n" in text or ("#" in text and not isinstance(read["value"], (str, list, dict))):
        return text
    value = read["value"]
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, float)):
        return value
    if isinstance(value, int):
        return value if str(value) == text and _is_carried(value) else text
    return value if _is_carried(value) else text


def _exact_float(text: str) -> float:
    value = float(text)
    if repr(value) != text or not isfinite(value):
        raise ValueError(f"{text} would not print back as typed")
    return value


def _is_carried(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_is_carried, value.values()))
    if isinstance(value, list):
        return all(map(_is_carried, value))
    if isinstance(value, int):
        return abs(value) <= _EXACT_INTEGER
    return isinstance(value, (str, float))


def _no_value(word: str) -> Mistake:
    return Mistake(
        "VALUE", "MISSING", f"{word} has no value", word, f"Write `tool config set {word} VALUE` or {word}=VALUE."
    )


def command(
    ctx: typer.Context,
    words: Annotated[list[str], typer.Argument(metavar="KEY VALUE | KEY=VALUE...", help="`-` reads VALUE from stdin.")],
    in_user_file: Annotated[bool, typer.Option("--global", help="Your own settings, also inside a workspace.")] = False,
    as_text: Annotated[bool, typer.Option("--string", help="Take every value as text.")] = False,
    if_version: Annotated[str | None, typer.Option(metavar="VERSION", help="Only if `get` tells it still.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change; change nothing.")] = False,
) -> Changed:
    """Set one key, or several in one change.

    Values are TOML where they parse as such and print back as typed, else text. Any dotted key may be set; the
    settings of the tool itself are checked.
    """
    wiring: Wiring = ctx.obj

    def read_value() -> str:
        return read_stdin(wiring.signals, _STDIN_LIMIT_BYTES).removesuffix("\n").removesuffix("\r")

    values = read_arguments(words, as_text=as_text, read_stdin=read_value)
    for key in values:
        if show_key(key) not in KNOWN and (hint := did_you_mean(show_key(key), list(KNOWN), nearness=0.8)):
            wiring.warn("UNKNOWN_KEY", f"{show_key(key)} is not a setting of the tool itself; it is kept. {hint}")
    if any(is_secret(show_key(key)) for key in values) and words[-1] != "-":
        wiring.warn("SECRET_IN_ARGV", "Other users can see a command line; pass `-` as VALUE and the secret on stdin.")
    scope = scope_to_change(wiring, in_user_file)
    return set_values(wiring, scope, values, if_version=if_version, dry_run=dry_run)
