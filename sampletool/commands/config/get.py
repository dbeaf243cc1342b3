"""The value of one setting, and where it comes from."""

import typer

from sampletool.commands._settings_options import GlobalOption, KeyArgument, RevealOption, Setting, reads_settings, show
from sampletool.wiring import Wiring

promise = reads_settings("tool config get key1", "tool config get api.token --reveal")


def command(
    ctx: typer.Context, key: KeyArgument, in_user_file: GlobalOption = False, reveal: RevealOption = False
) -> Setting:
    """Show the value of a key.

    The first that has one wins: flag, environment, project file, user file, default.
    """
    wiring: Wiring = ctx.obj
    settings = wiring.user_settings if in_user_file else wiring.settings
    return show(settings, key, reveal=reveal)
