"""Every setting that has a value."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.promise import Promise
from sampletool.contract.render import value_text
from sampletool.settings import Settings, read_key, shown
from sampletool.wiring import Wiring

promise = Promise(
    effect="nothing", ends_with=(ExitStatus.NOT_FOUND, ExitStatus.PERMISSION), examples=("tool config list",)
)


@dataclass(frozen=True)
class Setting:
    key: str
    value: Any
    source: str
    version: str


@dataclass(frozen=True)
class Listing:
    settings: list[Setting]
    version: str

    def lines(self) -> list[str]:
        return [f"{setting.key} = {value_text(setting.value)}  ({setting.source})" for setting in self.settings]


def list_settings(settings: Settings, *, reveal: bool = False) -> Listing:
    version = settings.version
    found = []
    for name in settings.names():
        source = settings.find(read_key(name))
        found.append(Setting(name, shown(name, source.value, reveal=reveal), source.name, version))
    return Listing(found, version)


def command(
    ctx: typer.Context,
    in_user_file: Annotated[bool, typer.Option("--global", help="Only what your own settings say.")] = False,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show the values of secret keys too.")] = False,
) -> Listing:
    """List every key that has a value, with where it comes from."""
    wiring: Wiring = ctx.obj
    return list_settings(wiring.user_settings if in_user_file else wiring.settings, reveal=reveal)
