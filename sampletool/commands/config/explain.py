"""Why a setting has the value it has."""

from dataclasses import dataclass
from typing import Any

import typer

from sampletool.commands._settings_options import KeyArgument, RevealOption, read_key, reads_settings, shown
from sampletool.contract.render import value_text
from sampletool.settings import KNOWN, Key, Settings
from sampletool.settings.toml_key import show_key
from sampletool.wiring import Wiring

promise = reads_settings("tool config explain jobs")


@dataclass(frozen=True)
class Given:
    source: str
    where: str
    value: Any
    wins: bool


@dataclass(frozen=True)
class Explanation:
    key: str
    value: Any
    source: str
    sources: list[Given]
    help: str | None

    def lines(self) -> list[str]:
        told = [f"{self.key} = {value_text(self.value)}", *([self.help] if self.help else [])]
        for given in self.sources:
            told.append(f"{'->' if given.wins else '  '} {given.source}: {value_text(given.value)}  ({given.where})")
        return told


def explain(settings: Settings, key: Key, *, reveal: bool) -> Explanation:
    winner = settings.find(key)
    given = [
        Given(source.name, source.where, shown(key, source.value, reveal=reveal), source == winner)
        for source in settings.sources(key)
    ]
    name = show_key(key)
    known = KNOWN.get(name)
    return Explanation(name, given[0].value, winner.name, given, known.help if known else None)


def command(ctx: typer.Context, key: KeyArgument, reveal: RevealOption = False) -> Explanation:
    """Show each source of a value, and which one wins."""
    wiring: Wiring = ctx.obj
    return explain(wiring.settings, read_key(key), reveal=reveal)
