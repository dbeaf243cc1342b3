"""The records in which the holders of a lock describe themselves.

A *record* says which process holds a lock: its pid, machine, command and start. Error messages and
retry loops read it. Correctness never depends on a record, because it can be wrong: its writer may
have crashed since, or have taken the lock and not written yet. lock_owners.py finds out whether a
record is still true.

An exclusive lock has one record, in the lock file itself:

* state "held": its writer holds the lock. If the lock turns out to be free, its writer crashed.
* state "free": its writer has released the lock. Only `usual_ms` still means something.

A shared lock can have many holders, called readers. Each has a *reader file* in a directory next to
the lock file, with one record. A reader keeps its reader file locked for as long as it lives, so a
reader file that is not locked was left by a reader that was killed.

On disk, a record is one block of fixed size with a checksum, written in one call:

    byte 0       not used (Windows locks this byte, and a locked byte cannot be read there)
    bytes 1-9    the CRC-32 of the text, in hexadecimal, and a space
    then         the text: a JSON object, padded with spaces
    last byte    a newline

Rejected designs:

* Truncate the file, then write: in a test, 84% of the reads met the empty file in between.
* JSON without a checksum: after an interrupted write, a mixture of two records can still be valid
  JSON.
* A list of pids in the lock file, for readers: many readers would have to change it at the same
  time, and a pid says nothing once it has been reused.
"""

import json
import math
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import UnionType

from .atomic_file import opened
from .clock import boot_seconds, utc
from .errors import UnsafeDirectory
from .flock import EXCLUSIVE, try_lock
from .holder import Holder, State
from .private_directory import check_private, private_directory
from .processes import pid_namespace, start_of

READERS = ".readers"
"""The suffix of the directory of a lock's reader files. The first reader of a lock creates it."""

_VERSION = 1
_RECORD_OFFSET = 1
_BLOCK_BYTES = 1024
_CHECKSUM_BYTES = 9
_NEWLINE_BYTES = 1
_TEXT_BYTES = _BLOCK_BYTES - _CHECKSUM_BYTES - _NEWLINE_BYTES

# Another user may have put something else there. Without O_NOFOLLOW, a link would be followed.
# Without O_NONBLOCK, opening a FIFO could hang on systems other than Linux.
_OPEN_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Record:
    """The description of a holder of a lock. The holder writes it itself.

    The names of the fields are the keys on disk, so other versions of this program read them. If
    you change a field, increase the version.
    """

    pid: int
    start: str | None
    """When the process started, see `processes.start_of`. Another process that gets the same pid
    later has another start."""
    host: str
    pid_namespace: str | None
    session_id: str
    command: str
    started_at: str = ""
    """When the hold started, in UTC, for people."""
    boot_seconds: float = 0.0
    """When the hold started, by a clock that cannot be set, to calculate its age."""
    state: str = "held"
    """Either "held" or "free"."""
    usual_ms: int | None = None
    """The duration of the last hold in which work was done. None if that is not known."""
    v: int = _VERSION
    """The version of this format."""

    def is_local(self) -> bool:
        """Return whether a pid in this record means the same process here.

        On another machine or in another container, the same pid is a different process.
        """
        return self.host == os.uname().nodename and self.pid_namespace == pid_namespace()

    def is_alive(self) -> bool:
        """Return whether the writer still runs, as far as processes can be seen from here."""
        current_start = start_of(self.pid)
        if current_start is None:
            return False
        # The pid may have been reused. Then another process has it now, with another start. A
        # writer that could not find out its own start is recognized by its pid alone.
        return self.start is None or self.start == current_start

    def as_holder(
        self,
        state: State,
        *,
        verified: bool,
        children: tuple[int, ...] | None = None,
    ) -> Holder:
        """Return the holder that this record describes, with what the caller has found out."""
        # `self.boot_seconds` is what the same clock showed when the hold started.
        age_seconds = boot_seconds() - self.boot_seconds
        return Holder(
            pid=self.pid,
            state=state,
            verified=verified,
            host=self.host,
            command=self.command,
            session_id=self.session_id,
            started_at=self.started_at,
            # The clock begins at 0 when the machine starts. So the age of a record from before that
            # seems to be negative.
            age_ms=max(0, round(age_seconds * 1000)),
            children=children,
        )


_FIELD_TYPES: dict[str, type | UnionType] = {
    "pid": int,
    "start": str | None,
    "host": str,
    "pid_namespace": str | None,
    "session_id": str,
    "command": str,
    "started_at": str,
    "boot_seconds": float,
    "state": str,
    "usual_ms": int | None,
    "v": int,
}
"""The keys of a record on disk, and the types of their values."""


def describe_me(session_id: str = "", command: str = "") -> Record:
    """Return a record of this process. `write_record` adds when this process took a lock."""
    pid = os.getpid()
    return Record(
        pid=pid,
        start=start_of(pid),
        host=os.uname().nodename,
        pid_namespace=pid_namespace(),
        session_id=session_id,
        command=command,
    )


def write_record(
    descriptor: int,
    me: Record,
    usual_ms: int | None = None,
    state: str = "held",
) -> None:
    """Replace the record in an open file: `me`, with the current time, this state and duration.

    `usual_ms` is how long the last hold took in which work was done. Others use it to estimate when
    the lock will be free.

    If the record cannot be written, for example because the disk is full, do nothing: the lock
    works without it.
    """
    record = replace(
        me,
        started_at=utc(),
        boot_seconds=boot_seconds(),
        state=state,
        usual_ms=usual_ms,
    )
    text = json.dumps(asdict(record), separators=(",", ":")).encode()
    # A text that is too long for the block (a very long command) is written too. read_record() then
    # finds a wrong checksum, and no record is better than the one of an earlier holder.
    padded_text = text.ljust(_TEXT_BYTES)
    block = _checksum(padded_text) + padded_text + b"\n"
    with suppress(OSError):
        os.pwrite(descriptor, block, _RECORD_OFFSET)


def read_record(descriptor: int) -> Record | None:
    """Return the record in an open file.

    Return None if there is none, if it is incomplete, or if another version wrote it in a format
    that is not known here. Raise OSError if the file cannot be read.
    """
    block = os.pread(descriptor, _BLOCK_BYTES, _RECORD_OFFSET)
    text = block[_CHECKSUM_BYTES:-_NEWLINE_BYTES]
    # The block is the checksum, the text and a newline. One that is too short, or empty, has a
    # wrong checksum too.
    if block[:_CHECKSUM_BYTES] != _checksum(text):
        return None

    # The checksum shows that the record is complete. Its content can still be anything.
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not _is_record(fields):
        return None
    return Record(**fields)


def _checksum(text: bytes) -> bytes:
    """Return the checksum of the text, as it is written before the text."""
    return b"%08x " % zlib.crc32(text)


def _is_record(fields: object) -> bool:
    """Return whether a decoded JSON value has the keys, the types and the version of a record."""
    if not isinstance(fields, dict) or fields.keys() != _FIELD_TYPES.keys():
        return False
    for name, field_type in _FIELD_TYPES.items():
        if not isinstance(fields[name], field_type):
            return False
    # Python's JSON can contain Infinity and NaN, and no age can be calculated from these.
    return fields["v"] == _VERSION and math.isfinite(fields["boot_seconds"])


def reader_directory_of(lock_path: Path) -> Path:
    """Return the path of the directory of a lock's reader files. It may not exist."""
    return lock_path.with_name(f"{lock_path.name}{READERS}")


@contextmanager
def listed_as_reader(lock_path: Path, me: Record) -> Iterator[int]:
    """Keep this process in the list of readers, which others see, until the block ends.

    The list is a directory with a file for each reader: see `living_readers`. A reader keeps its
    file locked. If a file is not locked, its reader was killed, and other processes remove it.

    Yield the descriptor of the locked file. Pass it to child processes that keep the lock. The file
    then stays locked as long as such a child runs, even if this process is killed.

    Raise UnsafeDirectory if another user could change the directory of the reader files.
    """
    directory = private_directory(reader_directory_of(lock_path))
    while True:
        with _new_reader_file(directory, me) as descriptor:
            is_locked = try_lock(descriptor, EXCLUSIVE)
            # Before it was locked, another process may have taken the new file for that of a killed
            # reader, and removed it. Then the loop creates another one.
            if is_locked and not _is_removed(descriptor):
                write_record(descriptor, me)
                yield descriptor
                # The caller's block has ended, so no other file is needed.
                return


@contextmanager
def _new_reader_file(directory: Path, me: Record) -> Iterator[int]:
    """Create a reader file, and yield its descriptor. Remove the file when the block ends."""
    # The pid is for people. The random part keeps the names of several holds apart.
    path = directory / f"{me.pid}-{os.urandom(4).hex()}"
    with opened(path, _OPEN_FLAGS | os.O_CREAT | os.O_EXCL) as descriptor:
        try:
            yield descriptor
        finally:
            path.unlink(missing_ok=True)


def _is_removed(descriptor: int) -> bool:
    """Return whether the open file has no name any more."""
    return os.fstat(descriptor).st_nlink == 0


def living_readers(lock_path: Path) -> list[tuple[Record, os.stat_result]]:
    """Return the record of each reader that lives, and the status of its reader file.

    The reader that has held the lock for the longest time comes first. This also removes the files
    of readers that were killed.
    """
    directory = reader_directory_of(lock_path)
    try:
        # Another user could have put links there, and removing their targets would be a mistake.
        check_private(directory)
        names = os.listdir(directory)
    except (FileNotFoundError, UnsafeDirectory):
        return []

    living = []
    for name in names:
        reader_file = directory / name
        # Skip a file that is gone: a reader removes its file when it exits.
        with suppress(OSError), opened(reader_file, _OPEN_FLAGS) as descriptor:
            # A living reader keeps its file locked. So if this process gets the lock, the reader
            # is dead, or it has created the file but not locked it yet. Such a reader notices that
            # its file is gone, and creates another one.
            if try_lock(descriptor, EXCLUSIVE):
                reader_file.unlink()
                continue
            record = read_record(descriptor)
            # A reader that has just locked its file may not have written its record yet.
            if record is not None:
                living.append((record, os.fstat(descriptor)))
    living.sort(key=_hold_start)
    return living


def _hold_start(reader: tuple[Record, os.stat_result]) -> float:
    record, _ = reader
    return record.boot_seconds
