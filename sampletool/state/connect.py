"""A URL becomes a store, importing the one backend that it names and no other."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from math import inf
from pathlib import Path

from ..kit.context import Context
from ..kit.contract.errors import did_you_mean
from ..kit.contract.file_errors import FileNotFound
from ..kit.extras import needing
from ..kit.places import make_workspace_directory, state_directory
from ..kit.program import WORKSPACE_DIRECTORY
from ..kit.safety.private_directory import private_directory
from ..kit.safety.signals import Signals
from ..kit.settings.known import check
from .retry_policy import RetryPolicy
from .store import Store
from .store_url import FORMS, no_store, refuse_password, shown_url

_FILE, _NAME = "sqlite://", "state.db"
_PARTING_SECONDS = 4.0
"""How long what remains to be said on the way out may take, however much that is."""
_POSTGRES = ("postgresql", "postgres")
_REDIS = ("redis", "rediss", "valkey", "valkeys", "unix", "redis+unix")


def open_store(url: str | None, workspace: Path | None, terms: RetryPolicy) -> Store:
    """Without a URL it is the workspace's own file, else the user's."""
    if url is None or url.startswith(_FILE):
        path, prepare = _file(url, workspace)
        hint = "This Python was built without its sqlite3 module: use another one, or a server as the store."
        with needing("sqlite3", "A SQLite store", hint):
            from .sqlite import Sqlite
        return Sqlite(path, terms, prepare=prepare)
    scheme, separator, _ = url.partition("://")
    if scheme in _POSTGRES and separator:
        with needing("postgres", "A PostgreSQL store"):
            from .postgres import Postgres
        return Postgres(url, terms)
    if scheme in _REDIS and separator:
        with needing("redis", "A Redis or Valkey store"):
            from .redis import RedisStore
        return RedisStore(url, terms)
    raise no_store(url, f"{shown_url(url)!r} is not {FORMS}", did_you_mean(scheme, ["sqlite", *_POSTGRES, *_REDIS]))


def store_of(context: Context, store: str | None = None, longest_seconds: float = inf) -> Store:
    """Where --store, the variable or the settings say; closed when the call ends. Connects when it is first used."""

    @contextmanager
    def hold(path: Path, name: str, recorded: bool) -> Iterator[None]:
        with context.make_lock(path, name).exclusively(terms.patience_seconds, recorded=recorded) as held:
            context.record_hold(held)
            yield

    if store is not None:
        refuse_password(store)
    patience = context.settings.value("lock_timeout")
    terms = RetryPolicy(hold, context.signals, context.warn, patience, longest_seconds, rehearse=context.dry_run)
    url = context.settings.value("store") if store is None else check("store", store, "--store")
    return context.exit_stack.enter_context(closing(open_store(url, context.workspace_or_none, terms)))


def parting_store_of(context: Context, store: str | None) -> Store:
    """For what remains to be said on the way out: the signal that ended the call does not end this, its time does."""
    leaving = Context(Signals())
    leaving.signals.limit(_PARTING_SECONDS)
    leaving.set_command_line(context.command_line.with_options({"lock_timeout": "2s"}))
    context.exit_stack.enter_context(leaving.exit_stack)
    return store_of(leaving, store)


def _file(url: str | None, workspace: Path | None) -> tuple[Path, Callable[[], object]]:
    """With what makes its directory, or finds out that it is not there."""
    if url is None and workspace is not None:
        return workspace / WORKSPACE_DIRECTORY / _NAME, partial(make_workspace_directory, workspace)
    if url is None:
        return state_directory() / _NAME, partial(private_directory, state_directory())
    name = url.removeprefix(_FILE)
    if not name.startswith("/") or name.endswith("/") or "\0" in name:  # `sqlite://name` would be a host
        raise no_store(url, f"{shown_url(url)!r} does not name a file", "Write sqlite:///absolute/path/state.db.")
    path = Path(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
    return path, partial(_must_be_there, path.parent)


def _must_be_there(directory: Path) -> None:
    if not directory.is_dir():
        raise FileNotFound(str(directory))
