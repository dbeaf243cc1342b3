"""The readers of a shared lock, one record file each.

A reader keeps its file locked for as long as it lives, so that locked means alive and free means dead: no pid has
to be guessed at. It is made under a dot name and renamed once it is locked; otherwise somebody who looks at that
moment would take it for a dead one's and remove it.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..contract.file_errors import UnsafeDirectory
from .lock_record import Record, began_now, read_record, write_record
from .places import check_private, private_directory

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def registered(lock_path: Path, me: Record) -> Iterator[int]:
    """Be named as a reader; yields the descriptor that a child inherits to stay named."""
    directory = private_directory(_directory(lock_path))
    name = f"{me.pid}-{os.urandom(4).hex()}"
    hidden, visible = directory / f".{name}", directory / name
    descriptor = os.open(hidden, _FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        write_record(descriptor, began_now(me))
        hidden.rename(visible)
        yield descriptor
    finally:
        for path in (hidden, visible):
            with suppress(FileNotFoundError):
                path.unlink()
        os.close(descriptor)


def living_readers(lock_path: Path) -> list[tuple[Record, os.stat_result]]:
    """Every reader that lives, oldest first. What the dead left behind is removed on the way."""
    try:
        check_private(_directory(lock_path))
        names = sorted(os.listdir(_directory(lock_path)))
    except (FileNotFoundError, UnsafeDirectory):
        return []
    living = []
    for name in names:
        if name.startswith("."):
            continue
        with suppress(OSError):
            found = _look_at(_directory(lock_path) / name)
            if found is not None:
                living.append(found)
    return sorted(living, key=lambda found: found[0].boot_seconds)


def _look_at(path: Path) -> tuple[Record, os.stat_result] | None:
    descriptor = os.open(path, _FLAGS)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            record = read_record(descriptor)
            return None if record is None else (record, os.fstat(descriptor))
        path.unlink()
        return None
    finally:
        os.close(descriptor)


def _directory(lock_path: Path) -> Path:
    return lock_path.with_name(f"{lock_path.name}.readers")
