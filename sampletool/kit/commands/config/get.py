"""The value of one setting, and where it comes from."""

from dataclasses import replace
from math import isfinite
from typing import Annotated, Any, NamedTuple

import typer

from ...contract.answer import UNTRUSTED, value_text
from ...contract.text import MASK, is_secret, redact
from ...global_options import RawOption
from ...settings.precedence import Key, Settings, SourceName
from ...settings.toml_key import show_key
from ._options import GlobalOption, read_key, reads_settings, setting_keys, settings_of

spec = replace(reads_settings, before=("config set key1 val1",), examples=("config get key1", "config get key1 --raw"))


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
    if isinstance(value, str):
        return value if reveal else redact(value)
    is_in_json = isinstance(value, int) or (isinstance(value, float) and isfinite(value))
    return value if is_in_json else str(value).replace(" ", "T")


KeyArgument = Annotated[str, typer.Argument(metavar="KEY", help="A dotted key.", autocompletion=setting_keys)]
RevealOption = Annotated[bool, typer.Option("--reveal", help="Show the values of secret keys too.")]


def command(
    ctx: typer.Context,
    key: KeyArgument,
    in_user_file: GlobalOption = False,
    reveal: RevealOption = False,
    raw: RawOption = False,
) -> Setting:
    """Show the value of a key.

    The first that has one wins: flag, environment, project file, user file, default.
    """
    return show(settings_of(ctx.obj, in_user_file), key, reveal=reveal)
