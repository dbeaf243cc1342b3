"""Sessions: an ID that groups several runs of a program, and a private directory for their files.

All sessions of a user are in one private directory, the *root*. Each session has a directory there,
and the name of this directory is its ID. A run that opens no session creates no directory.

A session that is in use is never removed:

* A run that uses a session holds the session's lock shared, so several runs can use it together.
* Removing a session takes the lock exclusively, without waiting.

The lock file is inside the session's directory and is removed with it. If a run is opening the
session at that moment, it notices that its lock file is gone, and creates the session again.

The *last use* of a session is the modification time of its directory.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .clock import utc
from .errors import LockTimeout
from .lock import Lock, MakeLock
from .lock_record import living_readers, reader_directory_of
from .private_directory import private_directory

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)

_LOCK_NAME = ".lock"

_TRASH_PREFIX = ".removed-"
"""How the name of a directory that is being deleted begins. No session ID begins with a dot."""

_MAX_ATTEMPTS = 6
"""How often a run creates a session that other processes keep removing, before it gives up."""

_CLOCK_TOLERANCE_SECONDS = 60.0
"""How far in the future a last use may be. The clocks of a file server and this machine differ."""


@dataclass(frozen=True)
class SessionState:
    """A session, as `list_sessions` found it."""

    session_id: str
    last_used_at: str
    """A moment in UTC, such as `2026-01-31T09:30:00Z`. Two of them can be compared as text."""
    in_use_by: list[int]
    """The process IDs of the runs that use it."""
    path: str


def is_session_id(text: str) -> bool:
    """Return whether the text may be the ID of a session. It becomes the name of a directory."""
    return _ID.fullmatch(text) is not None and ".." not in text


@contextmanager
def open_session(
    root: Path,
    session_id: str,
    make_lock: MakeLock,
    timeout_seconds: float,
) -> Iterator[Path]:
    """Yield the directory of a session, which is created if it is missing.

    No other process can remove the session until the block ends. Entering the block counts as a
    use, and so does leaving it without an error.

    Raise ValueError if `session_id` is not valid (see `is_session_id`): it could name a directory
    outside of the root, such as `../other`. Raise UnsafeDirectory if another user owns one of the
    directories or can write to it. Raise LockTimeout if the session is being removed and the lock
    does not become free in time. Raise FileNotFoundError if it is removed again and again.
    """
    if not is_session_id(session_id):
        raise ValueError(f"{session_id!r} is not a session ID")
    directory = private_directory(root) / session_id
    lock = make_lock(directory / _LOCK_NAME, f"session {session_id}")
    with ExitStack() as exit_stack:
        _create_and_lock(directory, lock, timeout_seconds, exit_stack)
        os.utime(directory)
        yield directory
        # The caller may have deleted the directory.
        with suppress(FileNotFoundError):
            os.utime(directory)


def list_sessions(root: Path) -> list[SessionState]:
    """Return the sessions, most recently used first.

    Raise UnsafeDirectory if another user owns the root or can write to it.
    """
    if not root.exists():
        return []
    sessions = []
    for name in sorted(os.listdir(private_directory(root))):
        directory = root / name
        if directory.is_symlink() or not directory.is_dir():
            continue
        if not is_session_id(name):
            continue
        # Another process may remove the session at this moment.
        with suppress(FileNotFoundError):
            sessions.append(_state_of(directory))
    return sorted(sessions, key=lambda session: session.last_used_at, reverse=True)


def correct_last_use(directory: Path, now: float) -> None:
    """Set the last use of a session to `now` (seconds since 1970) if it is in the future.

    The last use is the modification time of the session's directory. It is in the future
    if the session was used while the clock of the machine was wrong. Without a correction, its age
    would stay negative, possibly for years, and it would not be removed.
    """
    with suppress(FileNotFoundError):
        if directory.stat().st_mtime > now + _CLOCK_TOLERANCE_SECONDS:
            os.utime(directory, (now, now))


def remove_session(
    directory: Path,
    make_lock: MakeLock,
    unused_since: str | None = None,
) -> bool:
    """Remove the session with this directory, and return whether this process has removed it.

    Return False if the session is in use, or if another process has removed it. `unused_since` is a
    moment such as `2026-01-31T09:30:00Z`: if the session was used after it, also return False.

    Pass the directory of a session only: everything in it is deleted. Raise ValueError if its name
    is not a session ID. Nothing else tells a session from another directory: a session whose
    creation was interrupted is empty.
    """
    if not is_session_id(directory.name):
        raise ValueError(f"{str(directory)!r} is not the directory of a session")
    trash = directory.with_name(f"{_TRASH_PREFIX}{os.urandom(8).hex()}")
    lock = make_lock(directory / _LOCK_NAME, f"session {directory.name}")
    try:
        last_used_at = _last_used_at(directory)
        with lock.exclusively(0):
            # A run may have used the session before this process got the lock. Every run that uses
            # a session creates the directory of readers, and it stays. Without that directory, only
            # the lock file may be new: this process has just created it, which is no use.
            if reader_directory_of(directory / _LOCK_NAME).exists():
                last_used_at = _last_used_at(directory)
            if unused_since is not None and last_used_at > unused_since:
                return False
            # Rename it first. Deleting takes many steps, and a run that opens the session between
            # two of them would get a directory in which some of the files are missing.
            directory.rename(trash)
    except (LockTimeout, FileNotFoundError):
        return False
    # `sweep_trash` in another process may be deleting the same directory.
    shutil.rmtree(trash, ignore_errors=True)
    return True


def sweep_trash(root: Path) -> None:
    """Delete the directories of sessions whose removal was interrupted, for example by kill -9."""
    with suppress(FileNotFoundError):
        for name in os.listdir(root):
            if name.startswith(_TRASH_PREFIX):
                shutil.rmtree(root / name, ignore_errors=True)


def _create_and_lock(
    directory: Path,
    lock: Lock,
    timeout_seconds: float,
    exit_stack: ExitStack,
) -> None:
    """Create the directory if it is missing, and hold its lock shared until `exit_stack` closes."""
    for attempt in range(1, _MAX_ATTEMPTS + 1):
        private_directory(directory)
        try:
            exit_stack.enter_context(lock.shared(timeout_seconds))
            return
        except FileNotFoundError:
            # Another process has removed the directory since it was created.
            if attempt == _MAX_ATTEMPTS:
                raise


def _state_of(directory: Path) -> SessionState:
    """Return the state of the session. Raise FileNotFoundError if it is gone."""
    # Without a directory, this is an empty list.
    readers = living_readers(directory / _LOCK_NAME)
    return SessionState(
        session_id=directory.name,
        # Without a directory, this raises FileNotFoundError.
        last_used_at=_last_used_at(directory),
        in_use_by=[record.pid for record, _ in readers],
        path=str(directory),
    )


def _last_used_at(directory: Path) -> str:
    return utc(directory.stat().st_mtime)
