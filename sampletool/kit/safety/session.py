"""A session: an id that groups calls, and a private directory for what they leave behind.

Every call that uses a session holds the session's lock shared; removing one takes it exclusively, without waiting,
so nothing that is in use is ever removed. The lock lies inside the directory and goes with it: a call that was just
opening it sees that the path is gone, and makes the directory anew. A call that opens no session creates nothing.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from .clock import utc
from .errors import LockTimeout
from .lock import MakeLock
from .lock_record import living_readers
from .private_directory import private_directory

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
_LOCK_NAME = ".lock"
_TRASH = ".removed-"
_TRIES = 6


class SessionState(NamedTuple):
    session_id: str
    last_used_at: str
    in_use_by: list[int]
    path: str


def is_session_id(text: str) -> bool:
    """Return whether the text may be the id of a session: it becomes the name of a directory."""
    return _ID.fullmatch(text) is not None and ".." not in text


@contextmanager
def opened(root: Path, session_id: str, make_lock: MakeLock, timeout_seconds: float) -> Iterator[Path]:
    """The session's directory, kept from being removed until the `with` block ends."""
    directory = private_directory(root) / session_id
    with ExitStack() as using:
        for attempt in range(_TRIES):
            private_directory(directory)
            try:
                using.enter_context(make_lock(directory / _LOCK_NAME, f"session {session_id}").shared(timeout_seconds))
                break
            except FileNotFoundError:
                if attempt == _TRIES - 1:
                    raise
        os.utime(directory)
        yield directory
        with suppress(FileNotFoundError):
            os.utime(directory)


def list_sessions(root: Path) -> list[SessionState]:
    """The one that was used last comes first."""
    sessions = []
    for name in sorted(os.listdir(private_directory(root))) if root.exists() else ():
        directory = root / name
        if _ID.fullmatch(name) and directory.is_dir() and not directory.is_symlink():
            with suppress(FileNotFoundError):  # another call has just removed it
                at = utc(directory.stat().st_mtime)
                readers = [record.pid for record, _ in living_readers(directory / _LOCK_NAME)]
                sessions.append(SessionState(name, at, readers, str(directory)))
    return sorted(sessions, key=lambda session: session.last_used_at, reverse=True)


def remove(directory: Path, make_lock: MakeLock, oldest: str | None = None) -> bool:
    """Rename away, then delete. False if it is in use, was used after `oldest`, or another process has removed it."""
    trash = directory.with_name(f"{_TRASH}{os.urandom(8).hex()}")
    try:
        with make_lock(directory / _LOCK_NAME, f"session {directory.name}").exclusively(0):
            if oldest is not None and utc(directory.stat().st_mtime) > oldest:  # used since it was looked at
                return False
            directory.rename(trash)
    except (LockTimeout, FileNotFoundError):
        return False
    shutil.rmtree(trash, ignore_errors=True)  # another may be sweeping it away already
    return True


def sweep_trash(root: Path) -> None:
    """Delete what an interrupted removal had already renamed away."""
    with suppress(FileNotFoundError):
        for name in os.listdir(root):
            if name.startswith(_TRASH):
                shutil.rmtree(root / name, ignore_errors=True)
