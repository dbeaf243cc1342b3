"""Where the value of a setting comes from.

The first of these sources that has a value wins: flag, environment, project file, user file,
default. Users may set any dotted key. Only the settings that the tool obeys are checked, whatever
their source is (see known.py).
"""

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..contract.errors import KeyNotFound, did_you_mean
from ..places import config_file
from ..program import WORKSPACE_FILE, variable
from ..safety.errors import InvalidToml
from ..safety.toml_file import TomlText, read_toml
from .known import all_known, check, find_known
from .toml_key import TomlTable, TomlValue, parse_value, show_key, value_at

Key = tuple[str, ...]
ScopeName = Literal["project", "user"]
SourceName = Literal["flag", "environment", "project", "user", "default"]


class Source(NamedTuple):
    """A place that gives a key a value."""

    name: SourceName
    value: Any
    where: str
    """The flag, the variable or the path of the file."""


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
    ) -> None:
        """Prepare to read settings. Nothing is read or called until a value is needed.

        `find_workspace` returns the directory of the workspace, or None. `flags` are the options of
        the command line. With `files_only`, the files are the only sources: flags, environment
        variables and defaults do not count.
        """
        self.find_workspace = find_workspace
        self.flags = flags if flags is not None else {}
        self.files_only = files_only

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
        setting = None if self.files_only else find_known(name)
        if setting is not None:
            yield from self._sources_of_this_command(name, setting["kind"])
        for scope in self.scopes:
            value = value_at(self._tables[scope.name], key)
            if value is not None:
                yield Source(scope.name, value, str(scope.path))
        if setting is not None:
            yield Source("default", setting["default"], "default")

    def _sources_of_this_command(self, name: str, kind: str) -> Iterator[Source]:
        """Yield the flag and the environment variable of a known setting, if they are set."""
        if name in self.flags:
            yield Source("flag", self.flags[name], f"--{name.replace('_', '-')}")
        variable_name = variable(name)
        text = os.environ.get(variable_name)
        if text:
            value: TomlValue = text
            # A variable is always text. In a file, these kinds can be numbers, as in `jobs = 4`.
            if kind in ("count", "duration"):
                value = parse_value(text)
            yield Source("environment", value, variable_name)

    def find(self, key: Key) -> Source:
        """Return the source that wins. Raise KeyNotFound if the key has no value."""
        # The first source is the one that wins.
        for source in self.sources(key):
            return source
        name = show_key(key)
        where = " or ".join(str(scope.path) for scope in self.scopes)
        raise KeyNotFound(key=name, where=where, suggestion=did_you_mean(name, self.names()))

    def value(self, name: str) -> Any:
        """Return the value of a known setting, checked, or None if each command chooses it."""
        source = self.find((name,))
        return check(name, source.value, source.where)

    def names(self) -> list[str]:
        """Return every key that has a value. Each setting of the tool has at least a default."""
        names = set()
        for table in self._tables.values():
            for key, _ in leaves_of(table):
                names.add(show_key(key))
        if not self.files_only:
            names.update(all_known())
        return sorted(names)

    @property
    def version(self) -> str:
        """The version of the file that `config set` changes."""
        return self.texts[self.scopes[0].name].version


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
