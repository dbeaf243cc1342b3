"""What becomes of a settings file. All changes are made, or it raises and the file is as it was."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..contract.answer import Effect
from ..contract.errors import InvalidValues, Mistake, VersionConflict
from ..safety.errors import InvalidToml
from ..safety.toml_file import TomlEdit
from .precedence import Key, Scope, ScopeName, leaves_of, table_of
from .toml_edit import CannotEdit, NotAValue, set_value, unset_value
from .toml_key import get, show_key


class Change(NamedTuple):
    """What one key became. The value is not repeated: it may be a secret."""

    key: str
    effect: Effect


class Changed(NamedTuple):
    """The answer of a command that changes settings."""

    effect: Effect
    changes: list[Change]
    scope: ScopeName
    path: str
    version: str

    def lines(self) -> list[str]:
        return [f"{change.key}: {change.effect} ({self.scope} settings, {self.path})" for change in self.changes]


def set_values(file: TomlEdit, scope: Scope, values: Mapping[Key, Any], if_version: str | None = None) -> Changed:
    """Change the text, and write it. None, which no value in TOML is, unsets the key."""
    if if_version not in (None, file.before.version):
        raise VersionConflict(path=str(scope.path), expected=str(if_version), actual=file.before.version)
    table, text, changes = table_of(scope, file.before), file.text, []
    try:
        for key, value in values.items():
            path, found = (*scope.table, *key), get(table, key)
            effect: Effect = "unchanged"
            if type(found) is not type(value) or found != value:
                effect = "deleted" if value is None else "created" if found is None else "updated"
                if value is None and isinstance(found, dict):
                    raise NotAValue(path, path, found)
                text = unset_value(text, path) if value is None else set_value(text, path, value)
            changes.append(Change(show_key(key), effect))
    except NotAValue as error:
        raise InvalidValues(_mistake(error, scope)) from error
    except CannotEdit as error:
        raise InvalidToml(str(scope.path), str(error)) from error
    file.text = text
    file.write()
    effects: set[Effect] = {change.effect for change in changes if change.effect != "unchanged"}
    overall: Effect = effects.pop() if len(effects) == 1 else "updated" if effects else "unchanged"
    return Changed(overall, changes, scope.name, str(scope.path), file.version)


def _mistake(error: NotAValue, scope: Scope) -> Mistake:
    """Keys as the caller writes them, and what can be done."""
    path, at = (part[len(scope.table) :] for part in (error.path, error.at))
    leaves = leaves_of(error.found, at) if isinstance(error.found, dict) else [(at, None)]
    keys = [show_key(key) for key, _ in leaves]
    hint = f"Unset {'the keys in it' if len(keys) > 1 else 'what is there'}: {', '.join(keys)}."
    return Mistake("KEY", "INVALID_VALUE", str(NotAValue(path, at, error.found)), show_key(path), hint)
