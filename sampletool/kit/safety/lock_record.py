"""What a holder says about itself: the record it leaves in the lock file.

The record is one padded block with a checksum, written in one call: truncating first was read empty 84% of the
time, and text that parses is no proof that it is whole. It starts at byte 1, because byte 0 is what Windows locks.
A *free* record keeps only how long the last hold took; a *held* record in a lock that is free means that its
writer crashed. Correctness never depends on any of this: it is there to be read by people and by retry loops.
Whether a record can be believed is for lock_owners.py to find out.

The readers of a shared lock have one record file each. A reader keeps its file locked for as long as it lives, so
that locked means alive and free means dead: no pid has to be guessed at. A process that looks before the file is
locked removes it, as it would a dead reader's; the reader sees that, and makes another one.
"""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from .atomic_file import opened
from .clock import boot_seconds, utc
from .errors import UnsafeDirectory
from .flock import EXCLUSIVE, try_lock
from .holder import Holder, State
from .private_directory import check_private, private_directory
from .processes import pid_namespace, start_of

_BLOCK_BYTES = 1024
_RECORD_AT = 1
_VERSION = 1
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
READERS = ".readers"
"""Behind the name of a lock: the directory of its readers' records. None until it is shared for the first time."""


class Record(NamedTuple):
    """What a holder says about itself. `start` makes a reused pid recognisable."""

    pid: int
    start: str | None
    host: str
    pid_namespace: str | None
    session_id: str
    command: str
    started_at: str = ""
    boot_seconds: float = 0.0
    state: str = "held"
    usual_ms: int | None = None
    v: int = _VERSION

    def is_sane(self) -> bool:
        """Whether every member is what it says: a checksum tells that nothing is missing, not that it makes sense."""
        return all(map(isinstance, self, type(self).__annotations__.values())) and isfinite(self.boot_seconds)

    def is_local(self) -> bool:
        """Written on this machine, where a pid means the same process."""
        return self.host == os.uname().nodename and self.pid_namespace == pid_namespace()

    def is_alive(self) -> bool:
        """Whether the writer still runs, as far as processes can be seen from here."""
        start = start_of(self.pid)
        return start is not None and self.start in (None, start)

    def as_holder(self, state: State, *, verified: bool, children: tuple[int, ...] | None = None) -> Holder:
        age_ms = max(0, round((boot_seconds() - self.boot_seconds) * 1000))
        call = (self.host, self.command, self.session_id, self.started_at)
        return Holder(self.pid, state, verified, *call, age_ms, children)


def describe_me(session_id: str = "", command: str = "") -> Record:
    pid = os.getpid()
    return Record(pid, start_of(pid), os.uname().nodename, pid_namespace(), session_id, command)


def write_record(descriptor: int, me: Record, usual_ms: int | None = None, state: str = "held") -> None:
    """Say that a hold begins now, or that the lock is free, and how long a hold usually takes.

    A full disk is a reason to have no record, not to have no lock.
    """
    record = me._replace(started_at=utc(), boot_seconds=boot_seconds(), state=state, usual_ms=usual_ms)
    body = json.dumps(record._asdict(), separators=(",", ":")).encode().ljust(_BLOCK_BYTES - 10)
    with suppress(OSError):
        os.pwrite(descriptor, b"%08x " % zlib.crc32(body) + body + b"\n", _RECORD_AT)


def read_record(descriptor: int) -> Record | None:
    """The record, or None if there is none, or it is cut short, or of an unknown format."""
    block = os.pread(descriptor, _BLOCK_BYTES, _RECORD_AT)
    if len(block) != _BLOCK_BYTES or block[:9] != b"%08x " % zlib.crc32(block[9:-1]):
        return None
    try:
        record = Record(**json.loads(block[9:-1]))
    except (ValueError, TypeError):
        return None
    return record if record.v == _VERSION and record.is_sane() else None


def readers_of(lock_path: Path) -> Path:
    return lock_path.with_name(f"{lock_path.name}{READERS}")


@contextmanager
def registered(lock_path: Path, me: Record) -> Iterator[int]:
    """Be named as a reader; yields the descriptor that a child inherits to stay named."""
    directory = private_directory(readers_of(lock_path))
    while True:
        path = directory / f"{me.pid}-{os.urandom(4).hex()}"
        with opened(path, _FLAGS | os.O_CREAT | os.O_EXCL) as descriptor:
            try:
                if try_lock(descriptor, EXCLUSIVE) and os.fstat(descriptor).st_nlink:
                    write_record(descriptor, me)
                    yield descriptor
                    return
            finally:
                path.unlink(missing_ok=True)


def living_readers(lock_path: Path) -> list[tuple[Record, os.stat_result]]:
    """Every reader that lives, oldest first. What the dead left behind is removed on the way."""
    try:
        directory = check_private(readers_of(lock_path))
        names = os.listdir(directory)
    except (FileNotFoundError, UnsafeDirectory):
        return []
    living = []
    for name in names:
        with suppress(OSError), opened(directory / name, _FLAGS) as descriptor:
            if try_lock(descriptor, EXCLUSIVE):
                (directory / name).unlink()
            elif (record := read_record(descriptor)) is not None:
                living.append((record, os.fstat(descriptor)))
    return sorted(living, key=lambda reader: reader[0].boot_seconds)
