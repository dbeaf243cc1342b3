"""The value of one setting, and where it comes from."""

import typer

from sampletool.commands._settings_options import (
    READING,
    GlobalOption,
    KeyArgument,
    RevealOption,
    Setting,
    read_key,
    show,
)
from sampletool.contract.promise import Promise
from sampletool.wiring import Wiring

promise = Promise(
    effect="nothing",
    ends_with=READING,
    examples=("tool config get key1", "tool config get api.token --reveal"),
)


def command(
    ctx: typer.Context, key: KeyArgument, in_user_file: GlobalOption = False, reveal: RevealOption = False
) -> Setting:
    """Show the value of a key: the first of flag, environment, project file, user file, default."""
    wiring: Wiring = ctx.obj
    settings = wiring.user_settings if in_user_file else wiring.settings
    return show(settings, read_key(key), reveal=reveal)
