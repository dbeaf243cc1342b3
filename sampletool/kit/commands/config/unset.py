"""Remove one key or several at once."""

from dataclasses import replace
from typing import Annotated

import typer

from ...context import Context
from ...global_options import DryRunOption
from ...settings.change import Changed, set_values
from ._options import GlobalOption, IfVersionOption, changes_settings, read_key, scope_to_change, setting_keys

spec = replace(changes_settings, destroys="The value of each key.", examples=("config unset key1",))


def command(
    ctx: typer.Context,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Dotted keys.", autocompletion=setting_keys)],
    in_user_file: GlobalOption = False,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Remove one key, or several in one change.

    A key that is not there is unchanged.
    """
    context: Context = ctx.obj
    values = dict.fromkeys(map(read_key, keys))
    scope = scope_to_change(context, in_user_file)
    with context.editing(scope.path, dry_run=dry_run) as file:
        return set_values(file, scope, values, if_version)
