"""The value of one setting, and where it comes from."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.promise import Promise
from sampletool.contract.render import value_text
from sampletool.settings import Key, Settings, complete_key, read_key, shown
from sampletool.settings.toml_key import show_key
from sampletool.wiring import Wiring

promise = Promise(
    effect="nothing",
    ends_with=(ExitStatus.NOT_FOUND, ExitStatus.PERMISSION),
    examples=("tool config get key1", "tool config get api.token --reveal"),
)


@dataclass(frozen=True)
class Setting:
    key: str
    value: Any
    source: str
    version: str
    """Of the file that `config set` would change: pass it to --if-version."""

    def lines(self) -> list[str]:
        return [value_text(self.value)]


def get_value(settings: Settings, key: Key, *, reveal: bool = False) -> Setting:
    source = settings.find(key)
    name = show_key(key)
    return Setting(name, shown(name, source.value, reveal=reveal), source.name, settings.version)


def command(
    ctx: typer.Context,
    key: Annotated[str, typer.Argument(metavar="KEY", help="A dotted key.", autocompletion=complete_key)],
    in_user_file: Annotated[bool, typer.Option("--global", help="Only what your own settings say.")] = False,
    reveal: Annotated[bool, typer.Option("--reveal", help="Show the values of secret keys too.")] = False,
) -> Setting:
    """Show the value of a key: the first of flag, environment, project file, user file, default."""
    wiring: Wiring = ctx.obj
    settings = wiring.user_settings if in_user_file else wiring.settings
    return get_value(settings, read_key(key), reveal=reveal)
