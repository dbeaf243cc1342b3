"""Remove one key or several at once."""

from typing import Annotated

import typer

from sampletool.contract.errors import InvalidValues, KeyNotFound, Mistake
from sampletool.contract.promise import Promise
from sampletool.safety.toml_file import TomlText
from sampletool.settings import Key, Scope, leaves_of, read_key, table_of
from sampletool.settings.toml_edit import unset_value
from sampletool.settings.toml_key import get, has, show_key
from sampletool.settings_change import CHANGING, Change, Changed, change_settings, scope_to_change
from sampletool.wiring import Wiring

promise = Promise(
    effect="settings",
    ends_with=CHANGING,
    locks=("settings file",),
    examples=("tool config unset key1",),
)


def unset_keys(
    wiring: Wiring, scope: Scope, keys: list[Key], *, if_version: str | None = None, dry_run: bool = False
) -> Changed:
    """All are removed, or none: a key that is not there is an error."""

    def edit(before: TomlText) -> tuple[str, list[Change]]:
        text, document = before.text, before.document
        for key in keys:
            path = scope.document_key(key)
            if not has(document, path):
                known = [show_key(leaf) for leaf, _ in leaves_of(table_of(scope, before))]
                raise KeyNotFound(show_key(key), str(scope.path), known)
            if isinstance(get(document, path), dict):
                raise InvalidValues(
                    Mistake(
                        "KEY",
                        "INVALID_VALUE",
                        f"{show_key(key)} is a table, not a value",
                        show_key(key),
                        f"Unset the keys in it: {', '.join(show_key((*key, name)) for name in get(document, path))}.",
                    )
                )
        for key in keys:
            text = unset_value(text, scope.document_key(key))
        return text, [Change(show_key(key), "deleted") for key in keys]

    return change_settings(wiring, scope, edit, if_version=if_version, dry_run=dry_run)


def command(
    ctx: typer.Context,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...", help="Dotted keys.")],
    in_user_file: Annotated[bool, typer.Option("--global", help="Your own settings, also inside a workspace.")] = False,
    if_version: Annotated[str | None, typer.Option(metavar="VERSION", help="Only if `get` tells it still.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would change; change nothing.")] = False,
) -> Changed:
    """Remove keys from the settings, all or none."""
    wiring: Wiring = ctx.obj
    wanted = list(dict.fromkeys(map(read_key, keys)))
    return unset_keys(wiring, scope_to_change(wiring, in_user_file), wanted, if_version=if_version, dry_run=dry_run)
