"""Remove one key, or several in one change."""

from typing import Annotated

import typer

from ...context import Context
from ...contract.command_spec import CommandSpec
from ...contract.errors import InvalidValues, Mistake, VersionConflict
from ...global_options import DryRunOption
from ...settings.change import Changed, set_values
from ...settings.precedence import Key
from ._options import IfVersionOption, UserFileOption, read_key, scope_to_change, setting_keys

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
        typer.Argument(metavar="KEY...", help="Dotted keys.", autocompletion=setting_keys),
    ],
    in_user_file: UserFileOption = False,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Remove one key, or several in one change.

    A key without a value is reported as unchanged.
    """
    context: Context = ctx.obj
    # Set to None, a key is removed.
    values = dict.fromkeys(read_keys(keys))
    scope = scope_to_change(context, in_user_file)
    with context.editing(scope.path, dry_run=dry_run) as file:
        return set_values(file, scope, values, if_version)
