"""A URL becomes a store, importing the one backend that it names and no other."""

import os
from pathlib import Path

from sampletool.contract.errors import InvalidValues, Mistake, did_you_mean
from sampletool.contract.file_errors import FileNotFound
from sampletool.contract.redaction import redact
from sampletool.contract.store_errors import ExtraNotInstalled
from sampletool.safety.places import make_workspace_directory, private_directory, state_directory
from sampletool.state.promises import Store
from sampletool.state.terms import Terms
from sampletool.state.values import shown_url

FORMS = "sqlite:///PATH, postgresql://HOST/DATABASE, redis://HOST, rediss://HOST or valkey://HOST"
_POSTGRES = ("postgresql", "postgres")
_REDIS = ("redis", "rediss", "valkey", "valkeys", "unix", "redis+unix")


def open_store(url: str | None, workspace: Path | None, terms: Terms) -> Store:
    """Without a URL it is the workspace's own file, else the user's."""
    if url is None:
        return _open_default(workspace, terms)
    scheme, separator, rest = url.partition("://")
    if scheme == "sqlite" and separator:
        return _open_file(_path(url, rest), terms)
    if scheme in _POSTGRES and separator:
        try:
            from sampletool.state.postgres import Postgres
        except ModuleNotFoundError as error:
            raise _without_driver("postgres", "PostgreSQL", error) from error
        from sampletool.state.sql import SqlStore

        return SqlStore(Postgres(url, terms))
    if scheme in _REDIS and separator:
        try:
            from sampletool.state.redis import RedisStore
        except ModuleNotFoundError as error:
            raise _without_driver("redis", "Redis or Valkey", error) from error
        return RedisStore(url, terms)
    if scheme.startswith("memory"):
        raise _no_store(url, "the in-process store ends with its process, so a call of its own cannot share it")
    raise _no_store(url, f"{shown_url(url)!r} is not {FORMS}", did_you_mean(scheme, ["sqlite", *_POSTGRES, *_REDIS]))


def refuse_password(url: str) -> None:
    """A command line can be read by every user of the machine."""
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite" and (redact(url) != url or ":" in rest.rpartition("@")[0]):
        raise _no_store(
            shown_url(url),
            "a password on the command line can be seen by others",
            "Put the URL into TOOL_STORE or the settings, or the password into the driver's own variables.",
        )


def _open_default(workspace: Path | None, terms: Terms) -> Store:
    from sampletool.state.sql import SqlStore
    from sampletool.state.sqlite import Sqlite

    if workspace is None:
        directory = state_directory()
        lock = directory / ".state.db.lock"
        return SqlStore(Sqlite(directory / "state.db", lock, terms, lambda: private_directory(directory)))
    own = workspace / ".tool"
    locks = own / "locks"
    return SqlStore(
        Sqlite(
            own / "state.db",
            locks / "state.db.lock",
            terms,
            lambda: make_workspace_directory(workspace) and private_directory(locks),
        )
    )


def _open_file(path: Path, terms: Terms) -> Store:
    from sampletool.state.sql import SqlStore
    from sampletool.state.sqlite import Sqlite

    def must_be_there() -> None:
        if not path.parent.is_dir():
            raise FileNotFound(str(path.parent))

    return SqlStore(Sqlite(path, path.with_name(f".{path.name}.lock"), terms, must_be_there))


def _path(url: str, rest: str) -> Path:
    """Three slashes begin an absolute path; `sqlite://name` would be a host."""
    if not rest.startswith("/") or rest == "/" or rest.endswith("/") or "\0" in rest:
        raise _no_store(url, f"{shown_url(url)!r} does not name a file", "Write sqlite:///absolute/path/state.db.")
    path = Path(rest)
    return Path(os.path.realpath(path.parent)) / path.name


def _without_driver(extra: str, purpose: str, error: ModuleNotFoundError) -> Exception:
    """Only the driver may be missing; anything else that is not there is a fault of ours."""
    return error if (error.name or "").startswith("sampletool") else ExtraNotInstalled(extra, f"A {purpose} store")


def _no_store(url: str, problem: str, suggestion: str = f"A store is {FORMS}.") -> InvalidValues:
    return InvalidValues(
        Mistake("--store", "INVALID_VALUE", problem, shown_url(url), suggestion or f"A store is {FORMS}.")
    )
