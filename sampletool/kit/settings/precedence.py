"""Where the value of a setting comes from: flag, environment, project file, user file, default; the first wins.

Any dotted key may be set; those that the tool obeys are checked, wherever they come from (see known.py).
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
from .toml_key import get, parse_value, show_key

Key = tuple[str, ...]
ScopeName = Literal["project", "user"]
SourceName = Literal["flag", "environment", "project", "user", "default"]


class Source(NamedTuple):
    """One place that gives a value for a key."""

    name: SourceName
    value: Any
    where: str


class Scope(NamedTuple):
    """One settings file: the workspace's, whose settings are in a table, or the user's."""

    name: ScopeName
    path: Path
    table: Key = ()


class Settings:
    """Every source at once; files are read when the first value is asked for."""

    def __init__(self, workspace: Callable[[], Path | None], flags: Mapping[str, Any] | None = None) -> None:
        """Without flags, what the files say and nothing else."""
        self.workspace = workspace
        self.flags = flags

    @cached_property
    def scopes(self) -> list[Scope]:
        """The file that `config set` would change comes first."""
        workspace, user = self.workspace(), Scope("user", config_file())
        return [Scope("project", workspace / WORKSPACE_FILE, ("settings",)), user] if workspace else [user]

    @cached_property
    def texts(self) -> dict[str, TomlText]:
        return {scope.name: read_toml(scope.path) for scope in self.scopes}

    @cached_property
    def _tables(self) -> dict[str, dict[str, Any]]:
        return {scope.name: table_of(scope, self.texts[scope.name]) for scope in self.scopes}

    def sources(self, key: Key) -> Iterator[Source]:
        """Everything that gives this key a value, the winner first."""
        name = show_key(key)
        known = find_known(name) if self.flags is not None else None
        if known is not None and self.flags is not None:
            if name in self.flags:
                yield Source("flag", self.flags[name], f"--{name.replace('_', '-')}")
            named = variable(name)
            if given := os.environ.get(named):
                in_a_file = parse_value(given) if known["kind"] in ("count", "duration") else given
                yield Source("environment", in_a_file, named)
        for scope in self.scopes:
            if (value := get(self._tables[scope.name], key)) is not None:
                yield Source(scope.name, value, str(scope.path))
        if known is not None:
            yield Source("default", known["default"], "default")

    def find(self, key: Key) -> Source:
        for source in self.sources(key):
            return source
        name, where = show_key(key), " or ".join(str(scope.path) for scope in self.scopes)
        raise KeyNotFound(key=name, where=where, suggestion=did_you_mean(name, self.names()))

    def value(self, name: str) -> Any:
        """A known setting, checked; None where it is left to the call."""
        source = self.find((name,))
        return check(name, source.value, source.where)

    def names(self) -> list[str]:
        """Every key that has a value."""
        leaves = {show_key(key) for table in self._tables.values() for key, _ in leaves_of(table)}
        return sorted(leaves | all_known().keys() if self.flags is not None else leaves)

    @property
    def version(self) -> str:
        """Of the file that `config set` would change."""
        return self.texts[self.scopes[0].name].version


def table_of(scope: Scope, text: TomlText) -> dict[str, Any]:
    """The settings of one file; a workspace's file without its table has none."""
    found = get(text.document, scope.table)
    if found is not None and not isinstance(found, dict):
        raise InvalidToml(str(scope.path), f"{show_key(scope.table)} is not a table")
    return found or {}


def leaves_of(table: dict[str, Any], above: Key = ()) -> Iterator[tuple[Key, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves_of(value, (*above, name))
        else:
            yield (*above, name), value
