"""Every setting that has a value."""

from dataclasses import dataclass

import typer

from sampletool.commands._settings_options import GlobalOption, RevealOption, Setting, reads_settings, show
from sampletool.contract.render import value_text
from sampletool.settings import Settings
from sampletool.wiring import Wiring

promise = reads_settings("tool config list")


@dataclass(frozen=True)
class Listing:
    settings: list[Setting]
    version: str

    def lines(self) -> list[str]:
        return [f"{setting.key} = {value_text(setting.value)}  ({setting.source})" for setting in self.settings]


def list_settings(settings: Settings, *, reveal: bool) -> Listing:
    found = [show(settings, name, reveal=reveal) for name in settings.names()]
    return Listing(found, settings.version)


def command(ctx: typer.Context, in_user_file: GlobalOption = False, reveal: RevealOption = False) -> Listing:
    """List every key that has a value, and its source."""
    wiring: Wiring = ctx.obj
    return list_settings(wiring.user_settings if in_user_file else wiring.settings, reveal=reveal)
