"""Open the store that a URL names. Only the module of its backend is imported."""

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
from .store_url import FORMS, invalid_store, refuse_password, shown_url

_FILE_NAME = "state.db"
_SQLITE_PREFIX = "sqlite://"
_POSTGRES_SCHEMES = ("postgresql", "postgres")
_REDIS_SCHEMES = ("redis", "rediss", "valkey", "valkeys", "unix", "redis+unix")

_CLEANUP_SECONDS = 4.0
"""How long an interrupted command may still use the store, in all."""

_CLEANUP_LOCK_TIMEOUT = "2s"
"""How long it waits for the lock of the store meanwhile."""

_HINT_WITHOUT_SQLITE = (
    "This Python was built without its sqlite3 module. "
    "Use another Python, or a server as the store."
)  # fmt: skip


def open_store(url: str | None, workspace: Path | None, policy: RetryPolicy) -> Store:
    """Return the store that the URL names. It connects when it is first used.

    Without a URL, return the store in a file of the workspace, or of the user if there is no
    workspace. Raise InvalidValues if the URL names no store, and ExtraNotInstalled if the package
    of its backend is missing.
    """
    if url is None or url.startswith(_SQLITE_PREFIX):
        path, prepare_directory = _file_of(url, workspace)
        with needing("sqlite3", "A SQLite store", _HINT_WITHOUT_SQLITE):
            from .sqlite import SqliteStore
        return SqliteStore(path, policy, prepare_directory=prepare_directory)
    scheme, separator, _rest = url.partition("://")
    if scheme in _POSTGRES_SCHEMES and separator:
        with needing("postgres", "A PostgreSQL store"):
            from .postgres import PostgresStore
        return PostgresStore(url, policy)
    if scheme in _REDIS_SCHEMES and separator:
        with needing("redis", "A Redis or Valkey store"):
            from .redis import RedisStore
        return RedisStore(url, policy)
    known_schemes = ["sqlite", *_POSTGRES_SCHEMES, *_REDIS_SCHEMES]
    raise invalid_store(
        url,
        f"{shown_url(url)!r} is not {FORMS}",
        did_you_mean(scheme, known_schemes),
    )


def connect_for_command(
    context: Context,
    url_option: str | None = None,
    max_seconds: float = inf,
) -> Store:
    """Return the store of a command. It is closed when the command ends.

    The option --store names it, or the variable or the setting. `max_seconds` limits each verb.
    """

    # It reads `policy`, which is created below. The store calls it later.
    @contextmanager
    def hold_lock(path: Path, name: str, is_recorded: bool) -> Iterator[None]:
        lock = context.make_lock(path, name)
        with lock.exclusively(policy.wait_seconds, recorded=is_recorded) as hold:
            context.record_hold(hold)
            yield

    policy = RetryPolicy(
        hold_lock=hold_lock,
        signals=context.signals,
        warn=context.warn,
        requested_wait_seconds=context.settings.value("lock_timeout"),
        max_seconds=max_seconds,
        dry_run=context.dry_run,
    )
    if url_option is None:
        url = context.settings.value("store")
    else:
        refuse_password(url_option)
        url = check("store", url_option, "--store")
    store = open_store(url, context.workspace_or_none, policy)
    return context.exit_stack.enter_context(closing(store))


def connect_for_cleanup(context: Context, url_option: str | None) -> Store:
    """Return the store for what an interrupted command has to do before it exits.

    The signal or the deadline that ended the command does not end this. It has a short time limit
    of its own.
    """
    cleanup = Context(Signals())
    cleanup.signals.limit(_CLEANUP_SECONDS)
    limits = {"lock_timeout": _CLEANUP_LOCK_TIMEOUT}
    cleanup.set_command_line(context.command_line.with_options(limits))
    context.exit_stack.enter_context(cleanup.exit_stack)
    return connect_for_command(cleanup, url_option)


def file_of_store(url: str | None, workspace: Path | None) -> Path:
    """Return the file of a SQLite store. Without a URL, it is the one of the workspace or user."""
    path, _prepare_directory = _file_of(url, workspace)
    return path


def _file_of(
    url: str | None,
    workspace: Path | None,
) -> tuple[Path, Callable[[], object]]:
    """Return the file of a SQLite store, and a function to call before the file is created.

    The function creates the directory. If the caller chose the directory, it only checks that.
    """
    if url is None and workspace is not None:
        path = workspace / WORKSPACE_DIRECTORY / _FILE_NAME
        return path, partial(make_workspace_directory, workspace)
    if url is None:
        directory = state_directory()
        return directory / _FILE_NAME, partial(private_directory, directory)
    name = url.removeprefix(_SQLITE_PREFIX)
    # In sqlite://name, the name would be a host. With a slash at its end, a name is a directory. No
    # path contains NUL.
    is_absolute_file = name.startswith("/") and not name.endswith("/")
    if not is_absolute_file or "\0" in name:
        problem = f"{shown_url(url)!r} does not name a file"
        raise invalid_store(url, problem, "Write sqlite:///absolute/path/state.db.")
    # The lock of the store is next to the file, so each way to the directory must be the same one.
    directory = Path(os.path.realpath(os.path.dirname(name)))
    return directory / os.path.basename(name), partial(_require_directory, directory)


def _require_directory(directory: Path) -> None:
    """Raise FileNotFound if there is no directory: one that the caller chose is not created."""
    if not directory.is_dir():
        raise FileNotFound(str(directory))
