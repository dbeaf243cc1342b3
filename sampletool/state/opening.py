"""A URL becomes a store, importing the one backend that it names and no other."""

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from math import inf
from pathlib import Path

from sampletool.kit.context import Context
from sampletool.kit.contract.errors import did_you_mean
from sampletool.kit.contract.file_errors import FileNotFound
from sampletool.kit.extras import needing
from sampletool.kit.program import WORKSPACE_DIRECTORY
from sampletool.kit.safety.places import make_workspace_directory, private_directory, state_directory
from sampletool.kit.safety.signals import Signals
from sampletool.kit.settings.known import check
from sampletool.state.store import Store
from sampletool.state.store_url import FORMS, no_store, refuse_password, shown_url
from sampletool.state.terms import USUAL_SECONDS, Terms

_NAME = "state.db"
_PARTING = "2s"
_POSTGRES = ("postgresql", "postgres")
_REDIS = ("redis", "rediss", "valkey", "valkeys", "unix", "redis+unix")


def open_store(url: str | None, workspace: Path | None, terms: Terms) -> Store:
    """Without a URL it is the workspace's own file, else the user's."""
    if url is None and workspace is not None:
        path = workspace / WORKSPACE_DIRECTORY / _NAME
        return _open_file(path, terms, partial(make_workspace_directory, workspace))
    if url is None:
        path = state_directory() / _NAME
        return _open_file(path, terms, partial(private_directory, path.parent))
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator:
        path = _path(url, rest)
        return _open_file(path, terms, partial(_must_be_there, path.parent))
    if scheme in _POSTGRES and separator:
        with needing("postgres", "A PostgreSQL store"):
            from sampletool.state.postgres import Postgres
        return Postgres(url, terms)
    if scheme in _REDIS and separator:
        with needing("redis", "A Redis or Valkey store"):
            from sampletool.state.redis import RedisStore
        return RedisStore(url, terms)
    if scheme.startswith("memory"):
        raise no_store(url, "the in-process store ends with its process, so a call of its own cannot share it")
    raise no_store(url, f"{shown_url(url)!r} is not {FORMS}", did_you_mean(scheme, ["sqlite", *_POSTGRES, *_REDIS]))


def store_of(context: Context, store: str | None = None, longest_seconds: float = inf) -> Store:
    """Where --store, the variable or the settings say; closed when the call ends. Connects when it is first used."""

    @contextmanager
    def hold(path: Path, name: str, recorded: bool) -> Iterator[None]:
        seconds = context.patience(min(USUAL_SECONDS, longest_seconds))
        with context.make_lock(path, name).exclusively(seconds, recorded=recorded) as held:
            context.note(held)
            yield

    if store is not None:
        refuse_password(store)
    patience = context.settings.value("lock_timeout")
    terms = Terms(hold, context.signals, context.warn, patience, longest_seconds, context.dry_run)
    url = context.settings.value("store") if store is None else check("store", store, "--store")
    return context.opened.enter_context(closing(open_store(url, context.workspace_or_none, terms)))


def parting_store_of(context: Context, store: str | None) -> Store:
    """For what remains to be said on the way out: the signal that ended the call does not end this."""
    leaving = Context(Signals())
    leaving.options = context.options | {"lock_timeout": _PARTING}
    context.opened.enter_context(leaving.opened)
    return store_of(leaving, store)


def _open_file(path: Path, terms: Terms, prepare: Callable[[], object]) -> Store:
    hint = "This Python was built without its sqlite3 module: use another one, or a server as the store."
    with needing("sqlite3", "A SQLite store", hint):
        from sampletool.state.sqlite import Sqlite
    return Sqlite(path, terms, prepare=prepare)


def _must_be_there(directory: Path) -> None:
    if not directory.is_dir():
        raise FileNotFound(str(directory))


def _path(url: str, rest: str) -> Path:
    """Three slashes begin an absolute path; `sqlite://name` would be a host."""
    if not rest.startswith("/") or rest == "/" or rest.endswith("/") or "\0" in rest:
        raise no_store(url, f"{shown_url(url)!r} does not name a file", "Write sqlite:///absolute/path/state.db.")
    path = Path(rest)
    return Path(os.path.realpath(path.parent)) / path.name
