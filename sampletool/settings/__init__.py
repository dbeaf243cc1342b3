"""The settings: which are known, where each value comes from, and who wins.

Precedence is flag, environment, project file, user file, default. Any dotted key may be set; the known ones are
checked, wherever they come from.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from sampletool.contract.duration import parse_duration
from sampletool.contract.errors import InvalidValues, KeyNotFound, Mistake
from sampletool.contract.render import FORMATS
from sampletool.safety.places import WORKSPACE_FILE, config_file
from sampletool.safety.toml_file import TomlText, read_toml
from sampletool.settings.toml_key import get, has, show_key

Key = tuple[str, ...]

AUTO = "auto"
"""Decided anew by each call: by its command, the machine or the terminal."""


def _duration(value: Any) -> float:
    return parse_duration(str(value))


def _jobs(value: Any) -> int:
    if isinstance(value, (int, str)) and not isinstance(value, bool) and str(value).isdecimal() and int(value) > 0:
        return int(value)
    raise ValueError(f"{value!r} is not a positive whole number")


def _format(value: Any) -> str:
    if value in FORMATS:
        return str(value)
    raise ValueError(f"{value!r} is not one of {', '.join(FORMATS)}")


def _text(value: Any) -> str:
    if isinstance(value, str) and value:
        return value
    raise ValueError(f"{value!r} is not a text")


@dataclass(frozen=True)
class Known:
    check: Callable[[Any], Any]
    default: str
    expected: str
    help: str


KNOWN = {
    "format": Known(
        _format,
        AUTO,
        "json, jsonl, text or auto",
        "How answers are written; auto is text on a terminal, JSON elsewhere.",
    ),
    "jobs": Known(
        _jobs,
        AUTO,
        "a whole number from 1, or auto",
        "How many things may run at once; auto is one for each processor.",
    ),
    "lock_timeout": Known(
        _duration,
        AUTO,
        "a duration such as 30s, 0 to not wait, or auto",
        "How long to wait for a lock; auto is decided by the command.",
    ),
    "session_ttl": Known(
        _duration,
        "7d",
        "a duration such as 7d",
        "How long an unused session is kept from `tool session clean`.",
    ),
    "store": Known(
        _text,
        AUTO,
        "the URL of a store, or auto",
        "Where shared state lies; auto is the workspace's or the user's own file.",
    ),
}


@dataclass(frozen=True)
class Source:
    """One place that gives a value for a key."""

    name: str
    value: Any
    where: str


@dataclass(frozen=True)
class Scope:
    """One settings file: the workspace's, whose settings are in a table, or the user's."""

    name: str
    path: Path
    table: Key = ()

    def document_key(self, key: Key) -> Key:
        return (*self.table, *key)


DEFAULTS = {name: known.default for name, known in KNOWN.items()}


def user_scope() -> Scope:
    return Scope("user", config_file())


def project_scope(workspace: Path) -> Scope:
    return Scope("project", workspace / WORKSPACE_FILE, ("settings",))


@dataclass
class Settings:
    """Every source at once; files are read when the first value is asked for."""

    workspace: Callable[[], Path | None]
    flags: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def scopes(self) -> list[Scope]:
        workspace = self.workspace()
        return [*([project_scope(workspace)] if workspace else []), user_scope()]

    @cached_property
    def texts(self) -> dict[str, TomlText]:
        return {scope.name: read_toml(scope.path) for scope in self.scopes}

    @cached_property
    def _tables(self) -> dict[str, dict[str, Any]]:
        return {scope.name: table_of(scope, self.texts[scope.name]) for scope in self.scopes}

    def sources(self, key: Key) -> Iterator[Source]:
        """Everything that gives this key a value, the winner first."""
        name = show_key(key)
        if name in KNOWN:
            if name in self.flags:
                yield Source("flag", self.flags[name], f"--{name.replace('_', '-')}")
            variable = f"TOOL_{name.upper()}"
            if self.environ.get(variable):
                yield Source("environment", self.environ[variable], variable)
        for scope in self.scopes:
            if has(self._tables[scope.name], key):
                yield Source(scope.name, get(self._tables[scope.name], key), str(scope.path))
        if name in self.defaults:
            yield Source("default", self.defaults[name], "default")

    def find(self, key: Key) -> Source:
        for source in self.sources(key):
            return source
        raise KeyNotFound(show_key(key), " or ".join(str(scope.path) for scope in self.scopes), self.names())

    def value(self, name: str) -> Any:
        """A known setting, checked; None where it is left to the call."""
        source = self.find((name,))
        return check(name, source.value, source.where)

    def must_be_right(self, *names: str) -> None:
        """Tells at once what is wrong with any of these known settings."""
        mistakes: list[Mistake] = []
        for name in names:
            try:
                self.value(name)
            except InvalidValues as error:
                mistakes += error.mistakes
        if mistakes:
            raise InvalidValues(*mistakes)

    def names(self) -> list[str]:
        """Every key that has a value."""
        leaves = {show_key(key) for table in self._tables.values() for key, _ in leaves_of(table)}
        return sorted(leaves | self.defaults.keys())

    @property
    def version(self) -> str:
        """Of the file that `config set` would change."""
        return self.texts[self.scopes[0].name].version


def check(name: str, value: Any, where: str) -> Any:
    """What a known setting means, or an error that names who gave it; None if it is left to the call."""
    known = KNOWN[name]
    meant = known.default if value == AUTO else value
    try:
        return None if meant == AUTO else known.check(meant)
    except ValueError as error:
        problem, hint = f"{name} from {where}: {error}", f"Give {known.expected}."
        raise InvalidValues(Mistake(name, "INVALID_VALUE", problem, str(value), hint)) from error


def table_of(scope: Scope, text: TomlText) -> dict[str, Any]:
    """The settings of one file; without its table a workspace's file has none."""
    document = text.document
    found = get(document, scope.table) if has(document, scope.table) else {}
    return found if isinstance(found, dict) else {}


def leaves_of(table: dict[str, Any], above: Key = ()) -> Iterator[tuple[Key, Any]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from leaves_of(value, (*above, name))
        else:
            yield (*above, name), value
