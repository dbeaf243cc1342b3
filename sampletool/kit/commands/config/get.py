"""The value of one setting, and where it comes from."""

import typer

from ...context import Context
from ...global_options import RawOption
from ._options import GlobalOption, KeyArgument, RevealOption, Setting, reads_settings, show

spec = reads_settings("config get key1", "config get api.token --reveal --raw")


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
    context: Context = ctx.obj
    settings = context.user_settings if in_user_file else context.settings
    return show(settings, key, reveal=reveal)
