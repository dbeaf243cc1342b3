"""The value of one setting, and where it comes from."""

import typer

from ...global_options import RawOption
from ._options import GlobalOption, KeyArgument, RevealOption, Setting, reads_settings, settings_of, show

spec = reads_settings._replace(
    before=("config set key1=val1 api.user=ann",), examples=("config get key1", "config get api.user --reveal --raw")
)


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
