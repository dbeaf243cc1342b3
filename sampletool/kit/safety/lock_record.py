"""What a holder says about itself: the record it leaves in the lock file.

The record is one padded block with a checksum, written in one call: truncating first was read empty 84% of the
time, and text that parses is no proof that it is whole. It starts at byte 1, because byte 0 is what Windows locks.
A *free* record keeps only how long the last hold took; a *held* record in a lock that is free means that its
writer crashed. Correctness never depends on any of this: it is there to be read by people and by retry loops.
Whether a record can be believed is for lock_owners.py to find out.

The readers of a shared lock have one record file each. A reader keeps its file locked for as long as it lives, so
that locked means alive and free means dead: no pid has to be guessed at. It is made under a dot name and renamed once
it is locked; otherwise a process that looks at that moment would take it for a dead one's and remove it.
"""

import fcntl
import json
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from ..contract.file_errors import UnsafeDirectory
from ..contract.lock_held import Holder
from .places import check_private, private_directory
from .processes import can_see, pid_namespace, start_of

_BLOCK_BYTES = 1024
_RECORD_AT = 1
_VERSION = 1
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


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

    def is_alive(self) -> bool | None:
        """None where it cannot be told."""
        now = start_of(self.pid)
        if now is None:
            return False if can_see() else None
        return self.start is None or now == self.start

    def as_holder(self, state: str, *, verified: bool, children: tuple[int, ...] | None = None) -> Holder:
        told = {name: getattr(self, name) for name in ("pid", "host", "command", "session_id", "started_at")}
        age_ms = max(0, round((_boot_seconds() - self.boot_seconds) * 1000))
        return Holder(state=state, verified=verified, age_ms=age_ms, children=children, **told)  # type: ignore[arg-type]


def describe_me(session_id: str, command: str) -> Record:
    return began_now(
        Record(
            pid=os.getpid(),
            start=start_of(os.getpid()),
            host=os.uname().nodename,
            pid_namespace=pid_namespace(),
            session_id=session_id,
            command=command,
        )
    )


def began_now(me: Record, usual_ms: int | None = None) -> Record:
    """The record of a hold that begins at this moment."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return me._replace(started_at=now, boot_seconds=_boot_seconds(), usual_ms=usual_ms)


def write_record(descriptor: int, record: Record) -> None:
    body = json.dumps(record._asdict(), separators=(",", ":")).encode().ljust(_BLOCK_BYTES - 10)
    os.pwrite(descriptor, b"%08x " % zlib.crc32(body) + body + b"\n", _RECORD_AT)


def write_free(descriptor: int, record: Record, usual_ms: int | None) -> None:
    """Say that the lock is not held any more, and how long a hold usually takes."""
    write_record(descriptor, record._replace(state="free", usual_ms=usual_ms))


def read_record(descriptor: int) -> Record | None:
    """The record, or None if there is none that is whole and ours to understand."""
    block = os.pread(descriptor, _BLOCK_BYTES, _RECORD_AT)
    if len(block) != _BLOCK_BYTES or block[:9] != b"%08x " % zlib.crc32(block[9:-1]):
        return None
    try:
        record = Record(**json.loads(block[9:-1]))
    except (ValueError, TypeError):
        return None
    return record if record.v == _VERSION and record.is_sane() else None


def _boot_seconds() -> float:
    """Seconds since boot, sleep included: an age that no clock change can falsify."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


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
