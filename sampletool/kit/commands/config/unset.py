"""Remove one key or several at once."""

from functools import partial
from typing import Annotated

import typer

from ...contract.errors import KeyNotFound, did_you_mean
from ...global_options import DryRunOption
from ...safety.toml_file import TomlText
from ...settings.change import Change, Changed, change_settings
from ...settings.precedence import Key, Scope, leaves_of, table_of
from ...settings.toml_edit import NotAValue, unset_value
from ...settings.toml_key import get, has, show_key
from ._options import GlobalOption, IfVersionOption, changes_settings, read_key

spec = changes_settings("config unset key1")


def unset_keys(keys: list[Key], scope: Scope, before: TomlText) -> tuple[str, list[Change]]:
    """The text without them; a key that is not there is an error."""
    text, document = before.text, before.document
    for key in keys:
        path, name = scope.document_key(key), show_key(key)
        if not has(document, path):
            known = [show_key(leaf) for leaf, _ in leaves_of(table_of(scope, before))]
            raise KeyNotFound(key=name, where=str(scope.path), suggestion=did_you_mean(name, known))
        if isinstance(get(document, path), dict):
            raise NotAValue(path, path, get(document, path))
        text = unset_value(text, path)
    return text, [Change(show_key(key), "deleted") for key in keys]


def command(
    ctx: typer.Context,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Dotted keys.")],
    in_user_file: GlobalOption = False,
    if_version: IfVersionOption = None,
    dry_run: DryRunOption = False,
) -> Changed:
    """Remove one key, or several in one change."""
    edit = partial(unset_keys, list(dict.fromkeys(map(read_key, keys))))
    return change_settings(ctx.obj, edit, in_user_file=in_user_file, if_version=if_version, dry_run=dry_run)
