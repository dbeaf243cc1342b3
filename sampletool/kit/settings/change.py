"""Change several keys of a settings file at once: either all of them, or none."""

from collections.abc import Mapping
from dataclasses import dataclass

from ..contract.errors import InvalidValues, Mistake, VersionConflict
from ..contract.file_errors import EditRefused
from ..contract.response import Effect, count_fitting
from ..contract.text import shorten
from ..safety.toml_file import TomlEdit, TomlText
from .precedence import Key, Scope, ScopeName, leaves_of, table_of
from .toml_edit import CannotEdit, WrongKind, set_value, unset_value
from .toml_edit_many import set_many
from .toml_key import MAX_SHOWN_KEY_CHARACTERS, TomlTable, TomlValue, show_key, value_at


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
    unlisted: int | None = None
    """How many keys `changes` leaves out, because there are too many. None if it has all."""

    def lines(self) -> list[str]:
        """Return a line for each key."""
        lines = []
        for change in self.changes:
            lines.append(f"{change.key}: {change.effect} ({self.scope} settings, {self.path})")
        if self.unlisted is not None:
            lines.append(f"and {self.unlisted} more keys")
        return lines


def set_values(
    file: TomlEdit,
    scope: Scope,
    values: Mapping[Key, TomlValue],
    if_version: str | None = None,
) -> Changed:
    """Set each key to its value, and write the file. The value None removes the key.

    Keys are as the user writes them, relative to `scope.table`. A workspace's file has its settings
    in the table [settings], so there, the key `jobs` is at the path settings.jobs.

    Raise VersionConflict, InvalidValues or EditRefused if the file cannot be changed like this.
    Then it stays as it was.
    """
    if if_version is not None and if_version != file.before.version:
        raise VersionConflict(path=str(scope.path), expected=if_version, actual=file.before.version)
    # Each effect is about the settings from before all changes.
    settings_before = table_of(scope, file.before)
    changes = []
    new_values: dict[Key, TomlValue] = {}
    removed: list[Key] = []
    for key, value in values.items():
        _check_signals(file)
        effect = _effect(value_at(settings_before, key), value)
        changes.append(Change(shorten(show_key(key), MAX_SHOWN_KEY_CHARACTERS), effect))
        path = (*scope.table, *key)
        if effect == "deleted":
            removed.append(path)
        elif effect != "unchanged":
            new_values[path] = value
    try:
        text = file.text
        for path in removed:
            # In a file of 256 KiB, each of these takes a second.
            _check_signals(file)
            text = _without(text, path, file.before)
        text = set_many(text, new_values, lambda: _check_signals(file))
    except WrongKind as error:
        raise InvalidValues(_mistake(error, scope, values)) from error
    except CannotEdit as error:
        refused_key = show_key(_user_key(error.path, scope))
        raise EditRefused(
            str(scope.path),
            error.reason,
            error.hint,
            key=refused_key,
        ) from error
    file.text = text
    file.write()
    listed_count = count_fitting(changes)
    unlisted_count = len(changes) - listed_count
    return Changed(
        effect=_overall_effect(changes),
        changes=changes[:listed_count],
        scope=scope.name,
        path=str(scope.path),
        version=file.version,
        unlisted=unlisted_count if unlisted_count > 0 else None,
    )


def set_key(file: TomlEdit, key: Key, value: TomlValue) -> None:
    """Set one key of any TOML file. This changes `file.text`. To write the file, call `file.write`.

    For the settings of the tool, use `set_values`, which also checks and reports the changes.

    Raise EditRefused if there is no safe edit, and ValueError if the text is not TOML.
    """
    try:
        file.text = set_value(file.text, key, value)
    except CannotEdit as error:
        path = str(file.before.path)
        raise EditRefused(path, error.reason, error.hint, key=show_key(key)) from error


def set_keys(file: TomlEdit, values: Mapping[Key, TomlValue]) -> None:
    """Set several keys of any TOML file, as `set_key` does. Setting 1,000 keys takes 0.5 s.

    One after the other, they would take minutes. Raise the errors of `set_key`, and Interrupted or
    DeadlineExceeded if this process has to stop.
    """
    try:
        file.text = set_many(file.text, values, lambda: _check_signals(file))
    except CannotEdit as error:
        path = str(file.before.path)
        raise EditRefused(path, error.reason, error.hint, key=show_key(error.path)) from error


def _effect(old_value: TomlValue, new_value: TomlValue) -> Effect:
    """Return the effect of a change. None is the value of a key that is not set."""
    # Compare the types too, because in Python, 1 == 1.0 == True. (The types in a list are not
    # compared: replacing [1] with [1.0] counts as unchanged.)
    if type(old_value) is type(new_value) and old_value == new_value:
        return "unchanged"
    if new_value is None:
        return "deleted"
    if old_value is None:
        return "created"
    return "updated"


def _check_signals(file: TomlEdit) -> None:
    """Raise an error if the command has to stop. A dry run has no lock, so it does not check."""
    if file.hold is not None:
        file.hold.signals.check()


def _without(text: str, path: Key, before: TomlText) -> str:
    """Return the text of the file without the key at this path.

    Raise WrongKind if it is a table, or as `unset_value` does.
    """
    old_value = value_at(before.document, path)
    if isinstance(old_value, dict):
        raise WrongKind(path, obstacle=path, found=old_value)
    return unset_value(text, path)


def _user_key(path: Key, scope: Scope) -> Key:
    """Return the key as the user writes it: the path in the file, without the table of settings."""
    return path[len(scope.table) :]


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


def _mistake(error: WrongKind, scope: Scope, values: Mapping[Key, TomlValue]) -> Mistake:
    """Return the mistake to report, and how to avoid it. It names keys as the user writes them."""
    key = _user_key(error.path, scope)
    obstacle = _user_key(error.obstacle, scope)
    # The message of `error` names keys as they are in the file. This one does not.
    message = str(WrongKind(key, obstacle, error.found))
    hint = _removal_hint(obstacle, error.found, scope)
    for other_key in values:
        # Perhaps the obstacle is not from the file, but from another change of the same command.
        if _is_contradiction(key, other_key, values) or _is_contradiction(other_key, key, values):
            message = f"{show_key(key)} and {show_key(other_key)} contradict each other"
            hint = "Set only one of them."
            break
    return Mistake(
        param="KEY",
        code="INVALID_VALUE",
        message=message,
        value=show_key(key),
        suggestion=hint,
    )


def _is_contradiction(outer: Key, inner: Key, values: Mapping[Key, TomlValue]) -> bool:
    """Return whether `outer` is set to a value although `inner`, a key below it, is set too.

    For example, `a = 1` contradicts `a.b = 2`, because `a` cannot be a value and a table.
    """
    is_below = len(outer) < len(inner) and inner[: len(outer)] == outer
    if not is_below:
        return False
    # To set the table `a = {}` is no contradiction, because a.b can be set in it. Neither is the
    # value None, which removes a key.
    outer_becomes_value = values[outer] is not None and not isinstance(values[outer], dict)
    return outer_becomes_value and values[inner] is not None


def _removal_hint(key: Key, found: TomlValue, scope: Scope) -> str:
    """Return a hint for the user: how to remove the table or value that was found at this key."""
    if not isinstance(found, dict):
        return f"Remove this key first: {show_key(key)}."
    keys = [show_key(inner_key) for inner_key, _ in leaves_of(found, key)]
    if keys:
        noun = "these keys" if len(keys) > 1 else "this key"
        return f"Remove {noun} first: {', '.join(keys)}."
    # Only empty tables are left, and no command removes their headers. A header is shown as it is
    # in the file, where it begins with the table of settings.
    headers = [f"[{show_key((*scope.table, *inner))}]" for inner in _empty_tables(found, key)]
    noun = "the empty tables" if len(headers) > 1 else "the empty table"
    return f"Remove {noun} {', '.join(headers)} in a text editor."


def _empty_tables(table: TomlTable, above: Key) -> list[Key]:
    """Return the keys of the empty tables in a table. It must contain nothing but tables."""
    if not table:
        return [above]
    keys = []
    for name, inner in table.items():
        keys += _empty_tables(inner, (*above, name))
    return keys
