"""Remove one key, or several in one change."""

from typing import Annotated

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import InvalidValues, Mistake, VersionConflict
from ...global_options import DryRunOption
from ...settings.change import Changed, set_values
from ...settings.precedence import Key
from ._options import ChangeUserFileOption, IfVersionOption, read_key, scope_to_change, setting_keys

spec = CommandSpec(
    effect="settings",
    errors=(VersionConflict,),
    locks=("settings file",),
    reads=("settings",),
    destroys="The value of each key.",
    examples=("config unset key1",),
)


def read_keys(texts: list[str]) -> list[Key]:
    """Return the keys. Raise InvalidValues with the mistakes of all of them."""
    keys = []
    mistakes: list[Mistake] = []
    for text in texts:
        try:
            keys.append(read_key(text))
        except InvalidValues as error:
            mistakes += error.mistakes
    if mistakes:
        raise InvalidValues(*mistakes)
    return keys


def command(
    ctx: typer.Context,
    keys: Annotated[
        list[str],
        typer.Argument(
            metavar="KEY...",
            help="Keys to remove, for example jobs or build.target.",
            autocompletion=setting_keys,
        ),
    ],
    in_user_file: ChangeUserFileOption = False,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Remove one or more keys.

    Outside of a workspace, this changes your personal settings. If you name several keys, either
    all of them are removed or none are. A key that is not set is reported as unchanged, and does
    not make the command fail.
    """
    context: Context = ctx.obj
    # Set to None, a key is removed.
    values = dict.fromkeys(read_keys(keys))
    scope = scope_to_change(context, in_user_file)
    with context.editing(scope.path, dry_run=dry_run) as file:
        return set_values(file, scope, values, if_version)
