"""What a holder says about itself: the record it leaves in the lock file.

The record is one padded block with a checksum, written in one call: truncating first was read empty 84% of the
time, and text that parses is no proof that it is whole. It starts at byte 1, because byte 0 is what Windows locks.
A *free* record keeps only how long the last hold took; a *held* record in a lock that is free means that its
writer crashed. Correctness never depends on any of this: it is there to be read by people and by retry loops.
Whether a record can be believed is for witness.py to find out.
"""

import json
import os
import time
import zlib
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from ..contract.lock_held import Holder

_BLOCK_BYTES = 1024
_RECORD_AT = 1
_VERSION = 1


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
        return self.host == os.uname().nodename and self.pid_namespace == _pid_namespace()

    def is_alive(self) -> bool | None:
        """None where it cannot be told."""
        now = start_of(self.pid)
        if now is None:
            return None if start_of(os.getpid()) is None else False
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
            pid_namespace=_pid_namespace(),
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


def start_of(pid: int) -> str | None:
    """Boot id and start time of a living process; a zombie no longer holds anything."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        return None
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" else f"{boot[:8]}:{fields[18]}"


def _pid_namespace() -> str | None:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return None


def _boot_seconds() -> float:
    """Seconds since boot, sleep included: an age that no clock change can falsify."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
