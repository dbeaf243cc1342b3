"""Change a settings file: which one, under its lock, only if nobody changed it meanwhile, or as a forecast."""

from collections.abc import Callable
from dataclasses import dataclass

from ..context import Context
from ..contract.answer import Effect
from ..contract.errors import InvalidValues, Mistake, VersionConflict
from ..contract.file_errors import InvalidToml
from ..program import WORKSPACE_FILE
from ..safety.toml_file import TomlText, edit_toml, read_toml, resolve
from .precedence import Scope, leaves_of, project_scope, user_scope
from .toml_edit import CannotEdit, NotAValue
from .toml_key import show_key


@dataclass(frozen=True)
class Change:
    """What one key became. The value is not repeated: it may be a secret."""

    key: str
    effect: Effect


@dataclass(frozen=True)
class Changed:
    """The answer of a command that changes settings."""

    effect: Effect
    changes: list[Change]
    scope: str
    path: str
    version: str

    def lines(self) -> list[str]:
        return [f"{change.key}: {change.effect} ({self.scope} settings, {self.path})" for change in self.changes]


Edit = Callable[[Scope, TomlText], tuple[str, list[Change]]]
"""What the text of a settings file becomes, and what each key does. All changes are made, or it raises."""


def change_settings(
    context: Context, edit: Edit, *, in_user_file: bool, if_version: str | None, dry_run: bool
) -> Changed:
    scope = _scope_to_change(context, in_user_file)
    changes: list[Change] = []

    def change(before: TomlText) -> str:
        if if_version is not None and before.version != if_version:
            raise VersionConflict(path=str(scope.path), expected=if_version, actual=before.version)
        try:
            text, changes[:] = edit(scope, before)
        except NotAValue as error:
            raise wrong_kind(error, scope) from error
        except CannotEdit as error:
            raise InvalidToml(str(scope.path), str(error)) from error
        if before.links > 1 and text != before.text:
            context.warn("HARD_LINK", f"{before.path} had {before.links} names; only this one has the change.")
        return text

    if dry_run:
        after = read_toml(resolve(scope.path))
        change(after)
    else:
        _, after = edit_toml(scope.path, context.hold_file, change)
    return Changed(_overall(changes), changes, scope.name, str(scope.path), after.version)


def wrong_kind(error: NotAValue, scope: Scope) -> InvalidValues:
    """Keys as the caller writes them, and the way out."""
    path, at = (part[len(scope.table) :] for part in (error.path, error.at))
    keys = [show_key(key) for key, _ in leaves_of(error.found, at)] if isinstance(error.found, dict) else [show_key(at)]
    hint = f"Unset {'the keys in it' if len(keys) > 1 else 'what is there'}: {', '.join(keys)}."
    message = str(NotAValue(path, at, error.found))
    return InvalidValues(Mistake("KEY", "INVALID_VALUE", message, show_key(path), hint))


def _scope_to_change(context: Context, in_user_file: bool) -> Scope:
    """The workspace's settings; outside one, or if asked for, the user's."""
    if context.workspace_or_none is not None and not in_user_file:
        return project_scope(context.workspace)
    scope = user_scope()
    if not in_user_file:
        told = f"There is no {WORKSPACE_FILE} here or above, so this is about your own settings in {scope.path}."
        context.warn("USER_SETTINGS", told)
    return scope


def _overall(changes: list[Change]) -> Effect:
    """One word for all: what each was, or that the file was updated."""
    effects = {change.effect for change in changes} - {"unchanged"}
    return effects.pop() if len(effects) == 1 else "updated" if effects else "unchanged"
