"""Change several keys of a settings file at once: either all of them, or none."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..contract.answer import Effect
from ..contract.errors import InvalidValues, Mistake, VersionConflict
from ..contract.file_errors import EditRefused
from ..safety.toml_file import TomlEdit
from .precedence import Key, Scope, ScopeName, leaves_of, table_of
from .toml_edit import CannotEdit, NotAValue, set_value, unset_value
from .toml_key import TomlTable, TomlValue, show_key, value_at


@dataclass(frozen=True)
class Change:
    """The effect on one key. It does not contain the value, which may be a secret."""

    key: str
    effect: Effect


@dataclass(frozen=True)
class Changed:
    """The result of a command that changes settings."""

    effect: Effect
    changes: list[Change]
    scope: ScopeName
    path: str
    version: str

    def lines(self) -> list[str]:
        """Return a line for each key."""
        lines = []
        for change in self.changes:
            lines.append(f"{change.key}: {change.effect} ({self.scope} settings, {self.path})")
        return lines


def set_values(
    file: TomlEdit,
    scope: Scope,
    values: Mapping[Key, TomlValue],
    if_version: str | None = None,
) -> Changed:
    """Set each key to its value, and write the file. The value None removes the key.

    Raise VersionConflict, InvalidValues or EditRefused if the file cannot be changed like this.
    Then it stays as it was.
    """
    if if_version is not None and if_version != file.before.version:
        raise VersionConflict(path=str(scope.path), expected=if_version, actual=file.before.version)
    table = table_of(scope, file.before)
    text = file.text
    changes = []
    try:
        for key, value in values.items():
            # A file of 256 KiB takes a second for each key.
            if file.hold is not None:
                file.hold.signals.check()
            effect = _effect(value_at(table, key), value)
            if effect != "unchanged":
                text = _with_change(text, table, (*scope.table, *key), key, value)
            changes.append(Change(show_key(key), effect))
    except NotAValue as error:
        raise InvalidValues(_mistake(error, scope, values)) from error
    except CannotEdit as error:
        key = error.path[len(scope.table) :]
        raise EditRefused(str(scope.path), error.reason, error.hint, key=show_key(key)) from error
    file.text = text
    file.write()
    return Changed(
        effect=_overall_effect(changes),
        changes=changes,
        scope=scope.name,
        path=str(scope.path),
        version=file.version,
    )


def set_key(file: TomlEdit, key: Key, value: TomlValue) -> None:
    """Set one key of a file that is not a settings file. Its text changes, but nothing is written.

    Raise EditRefused if there is no safe edit, and ValueError if the text is not TOML.
    """
    try:
        file.text = set_value(file.text, key, value)
    except CannotEdit as error:
        path = str(file.before.path)
        raise EditRefused(path, error.reason, error.hint, key=show_key(key)) from error


def _effect(old_value: TomlValue, new_value: TomlValue) -> Effect:
    """Return the effect of a change. None is the value of a key that is not set."""
    # In Python, 1 == 1.0 == True.
    if type(old_value) is type(new_value) and old_value == new_value:
        return "unchanged"
    if new_value is None:
        return "deleted"
    if old_value is None:
        return "created"
    return "updated"


def _with_change(text: str, table: TomlTable, path: Key, key: Key, value: TomlValue) -> str:
    """Return the text with another value for the key, whose path in the file is `path`."""
    if value is not None:
        return set_value(text, path, value)
    found = value_at(table, key)
    if isinstance(found, dict):
        raise NotAValue(path, path, found)
    return unset_value(text, path)


def _overall_effect(changes: list[Change]) -> Effect:
    """Return the effect that all changed keys have in common, or "updated"."""
    effects: set[Effect] = set()
    for change in changes:
        if change.effect != "unchanged":
            effects.add(change.effect)
    if not effects:
        return "unchanged"
    if len(effects) > 1:
        return "updated"
    return effects.pop()


def _mistake(error: NotAValue, scope: Scope, values: Mapping[Key, TomlValue]) -> Mistake:
    """Return the mistake, and how to avoid it. Keys are as the user writes them."""
    path = error.path[len(scope.table) :]
    at = error.at[len(scope.table) :]
    for other in values:
        if _is_contradiction(path, other, values) or _is_contradiction(other, path, values):
            message = f"{show_key(path)} and {show_key(other)} contradict each other"
            return Mistake("KEY", "INVALID_VALUE", message, show_key(path), "Set only one of them.")
    message = str(NotAValue(path, at, error.found))
    hint = _how_to_make_way(error.found, at, scope)
    return Mistake("KEY", "INVALID_VALUE", message, show_key(path), hint)


def _is_contradiction(outer: Key, inner: Key, values: Mapping[Key, TomlValue]) -> bool:
    """Return whether one change makes `outer` a value, and another makes it a table of `inner`."""
    if len(outer) >= len(inner) or inner[: len(outer)] != outer:
        return False
    # None removes a key. And below a table that is set, another key can be set.
    outer_becomes_value = values[outer] is not None and not isinstance(values[outer], dict)
    return outer_becomes_value and values[inner] is not None


def _how_to_make_way(found: TomlValue, at: Key, scope: Scope) -> str:
    """Return a hint for the user: how to remove what was found at this key."""
    if not isinstance(found, dict):
        return f"Remove this key first: {show_key(at)}."
    keys = [show_key(key) for key, _ in leaves_of(found, at)]
    if keys:
        noun = "these keys" if len(keys) > 1 else "this key"
        return f"Remove {noun} first: {', '.join(keys)}."
    # Only headers are left, and no command removes a header.
    headers = [f"[{show_key((*scope.table, *key))}]" for key in _empty_tables(found, at)]
    noun = "the empty tables" if len(headers) > 1 else "the empty table"
    return f"Remove {noun} {', '.join(headers)} in a text editor."


def _empty_tables(table: TomlTable, above: Key) -> list[Key]:
    """Return the keys of the tables without content, in a table that contains only tables."""
    if not table:
        return [above]
    keys = []
    for name, inner in table.items():
        keys += _empty_tables(inner, (*above, name))
    return keys
