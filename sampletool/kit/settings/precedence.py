"""Where the value of a setting comes from.

The first of these sources that has a value wins: flag, environment, project file, user file,
default. Users may set any dotted key. Only the settings that the tool obeys are checked, whatever
their source is (see known.py).

A setting that was renamed is also found by its former names: in each variable or file, the present
name wins over a former one. If a former name gave the value that is used, the user is warned.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..contract.errors import KeyNotFound, did_you_mean
from ..places import config_file
from ..program import WORKSPACE_FILE, env_variable
from ..safety.errors import InvalidToml
from ..safety.toml_file import TomlText, read_toml
from .kinds import KnownSetting
from .known import all_settings, check, find_current_name, find_setting
from .toml_key import TomlTable, TomlValue, parse_key, parse_value, show_key, value_at

Key = tuple[str, ...]
ScopeName = Literal["project", "user"]
SourceName = Literal["flag", "environment", "project", "user", "default"]


class Source(NamedTuple):
    """A place that gives a key a value."""

    name: SourceName
    value: Any
    where: str
    """The flag, the variable or the path of the file."""
    former_name: str | None = None
    """The former name of the setting, if the place has the value under this name."""


class Scope(NamedTuple):
    """A settings file: the workspace's, in which the settings are in a table, or the user's."""

    name: ScopeName
    path: Path
    table: Key = ()


class Settings:
    """The settings of all sources. Files are read when the first value is needed."""

    def __init__(
        self,
        find_workspace: Callable[[], Path | None],
        flags: Mapping[str, Any] | None = None,
        *,
        files_only: bool = False,
        warn: Callable[[str, str], None] | None = None,
    ) -> None:
        """Prepare to read settings. Nothing is read or called until a value is needed.

        `find_workspace` returns the directory of the workspace, or None. `flags` are the options of
        the command line. With `files_only`, the files are the only sources: flags, environment
        variables and defaults do not count. `warn` is called with a code and a message if a value
        comes from a former name, or if its setting is deprecated.
        """
        self.find_workspace = find_workspace
        self.flags = flags if flags is not None else {}
        self.files_only = files_only
        self._warn = warn
        self._warned_names: set[str] = set()

    @cached_property
    def scopes(self) -> list[Scope]:
        """The settings files. The first one is the one that `config set` changes."""
        scopes = []
        workspace = self.find_workspace()
        if workspace is not None:
            # This file is not only for settings, so they have a table of their own.
            scopes.append(Scope("project", workspace / WORKSPACE_FILE, table=("settings",)))
        scopes.append(Scope("user", config_file()))
        return scopes

    @cached_property
    def texts(self) -> dict[str, TomlText]:
        """The text of each settings file, by the name of its scope."""
        return {scope.name: read_toml(scope.path) for scope in self.scopes}

    @cached_property
    def _tables(self) -> dict[str, TomlTable]:
        return {scope.name: table_of(scope, self.texts[scope.name]) for scope in self.scopes}

    def sources(self, key: Key) -> Iterator[Source]:
        """Yield each source that gives this key a value. The first one wins."""
        name = show_key(key)
        # Only a setting that the tool itself obeys has a flag, a variable and a default.
        setting = find_setting(name)
        former_names = setting.get("former_names", ()) if setting is not None else ()
        if setting is not None and not self.files_only:
            yield from self._sources_of_this_command(name, setting)
        for scope in self.scopes:
            yield from self._sources_in_file(scope, key, former_names)
        if setting is not None and not self.files_only:
            yield Source("default", setting["default"], "default")

    def _sources_of_this_command(self, name: str, known: KnownSetting) -> Iterator[Source]:
        """Yield the flag and the environment variable of a known setting, if they are set.

        If the variable is not set, yield that of the first former name that has one.
        """
        if name in self.flags:
            yield Source("flag", self.flags[name], f"--{name.replace('_', '-')}")
        text = os.environ.get(env_variable(name))
        if text:
            yield Source("environment", _value_of_variable(text, known), env_variable(name))
            return
        for former_name in known.get("former_names", ()):
            variable = env_variable(former_name)
            text = os.environ.get(variable)
            if text:
                value = _value_of_variable(text, known)
                yield Source("environment", value, variable, former_name)
                return

    def _sources_in_file(
        self,
        scope: Scope,
        key: Key,
        former_names: tuple[str, ...],
    ) -> Iterator[Source]:
        """Yield the value of the key in a settings file, or else of one of its former names."""
        table = self._tables[scope.name]
        value = value_at(table, key)
        if value is not None:
            yield Source(scope.name, value, str(scope.path))
            return
        for former_name in former_names:
            value = value_at(table, parse_key(former_name))
            if value is not None:
                yield Source(scope.name, value, str(scope.path), former_name)
                return

    def find(self, key: Key) -> Source:
        """Return the source that wins. Raise KeyNotFound if the key has no value."""
        # The first source is the one that wins.
        name = show_key(key)
        for source in self.sources(key):
            self._warn_once(name, source)
            return source
        where = " or ".join(str(scope.path) for scope in self.scopes)
        raise KeyNotFound(key=name, where=where, suggestion=did_you_mean(name, self.names()))

    def _warn_once(self, name: str, source: Source) -> None:
        """Warn if the value comes from a former name, or if a deprecated setting has a value."""
        if self._warn is None or name in self._warned_names:
            return
        message = outdated_message(name, source)
        if message is not None:
            self._warned_names.add(name)
            self._warn("DEPRECATED", message)

    def value(self, name: str) -> Any:
        """Return the value of a known setting, checked, or None if each command chooses it."""
        source = self.find((name,))
        return check(name, source.value, source.where)

    def keys(self) -> list[Key]:
        """Return every key that has a value, in the order of their names."""
        keys_by_name: dict[str, Key] = {}
        for table in self._tables.values():
            for key, _ in leaves_of(table):
                name = show_key(key)
                current_name = find_current_name(name)
                if current_name == name:
                    keys_by_name[name] = key
                else:
                    keys_by_name[current_name] = parse_key(current_name)
        if not self.files_only:
            for name in all_settings():
                keys_by_name[name] = parse_key(name)
        return [keys_by_name[name] for name in sorted(keys_by_name)]

    def names(self) -> list[str]:
        """Return the name of every key that has a value, sorted."""
        return [show_key(key) for key in self.keys()]

    @property
    def version(self) -> str:
        """The version of the file that `config set` changes."""
        return self.texts[self.scopes[0].name].version


def _value_of_variable(text: str, known: KnownSetting) -> TomlValue:
    """Return the value of a setting that an environment variable gives as text."""
    # In a file, these kinds can be numbers: `jobs = 4`.
    if known["kind"] in ("count", "duration"):
        return parse_value(text)
    return text


def outdated_message(name: str, source: Source) -> str | None:
    """Return what the user should write instead, or None if nothing about the value is outdated."""
    if source.former_name is not None:
        if source.name == "environment":
            variable = env_variable(name)
            return f"{source.where} is now called {variable}. Set {variable} instead."
        return f"{source.former_name} in {source.where} is now called {name}. Rename it there."
    known = find_setting(name)
    if known is None or source.name == "default":
        return None
    advice = known.get("deprecated")
    if not advice:
        return None
    return f"{name} ({source.where}) is deprecated. {advice}"


def table_of(scope: Scope, text: TomlText) -> TomlTable:
    """Return the settings of one file, or {} if it has none.

    Raise InvalidToml if the file is not TOML, or if its settings are not a table.
    """
    table = value_at(text.document, scope.table)
    if table is None:
        return {}
    if not isinstance(table, dict):
        raise InvalidToml(str(scope.path), f"{show_key(scope.table)} is not a table")
    return table


def leaves_of(table: TomlTable, prefix: Key = ()) -> Iterator[tuple[Key, TomlValue]]:
    """Yield each key in the table and in the tables below, and its value.

    Each key starts with `prefix`, which is the key of the table itself.
    """
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves_of(value, (*prefix, name))
        else:
            yield (*prefix, name), value
