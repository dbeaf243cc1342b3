"""Why a setting has the value it has."""

from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import typer

from ...context import Context
from ...contract.answer import UNTRUSTED, value_text
from ...settings.known import find_known
from ...settings.precedence import SourceName
from ...settings.toml_key import show_key
from ._options import read_key, reads_settings
from .get import KeyArgument, RevealOption, shown

spec = replace(reads_settings, examples=("config explain jobs",))


class Given(NamedTuple):
    source: SourceName
    where: str
    value: Annotated[Any, UNTRUSTED]
    wins: bool


class Explanation(NamedTuple):
    key: str
    value: Annotated[Any, UNTRUSTED]
    source: SourceName
    sources: list[Given]
    help: str | None

    def lines(self) -> list[str]:
        lines = [f"{self.key} = {value_text(self.value)}", *([self.help] if self.help else [])]
        for given in self.sources:
            lines.append(f"{'->' if given.wins else '  '} {given.source}: {value_text(given.value)}  ({given.where})")
        return lines


def command(ctx: typer.Context, key: KeyArgument, reveal: RevealOption = False) -> Explanation:
    """Show each source of a value, and which one wins."""
    context: Context = ctx.obj
    settings, path = context.settings, read_key(key)
    winner = settings.find(path)
    given = [
        Given(source.name, source.where, shown(path, source.value, reveal=reveal), source == winner)
        for source in settings.sources(path)
    ]
    name = show_key(path)
    known = find_known(name)
    return Explanation(name, given[0].value, winner.name, given, known["help"] if known else None)
