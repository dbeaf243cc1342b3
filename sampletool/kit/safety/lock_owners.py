"""Who really holds a lock: what the records say, confirmed by the kernel where it tells.

On Linux the `lock:` line in /proc/PID/fdinfo names the process that took a lock, for every descriptor that carries
it and for no other. Unknown beats wrong: a name that cannot be confirmed is reported as not verified.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from ..contract.lock_held import Holder
from . import processes
from .lock_record import Record, living_readers, read_record

_TRIES = 3
_BETWEEN_TRIES_SECONDS = 0.005
_UNSEEN = 0
"""What the kernel calls a process of another pid namespace; inside a container also one that has ended."""


class Finding(NamedTuple):
    """Everybody who holds the lock; nobody, if it is just changing hands."""

    holders: list[Holder]
    shared: bool = False
    usual_ms: int | None = None


def find_holders(lock_path: Path) -> Finding:
    finding = Finding([])
    for attempt in range(_TRIES):
        if attempt:
            time.sleep(_BETWEEN_TRIES_SECONDS)
        try:
            record, file = _look_at(lock_path)
        except FileNotFoundError:
            return finding
        finding = _find(lock_path, file, record)
        if any(holder.verified for holder in finding.holders):
            break
    return finding


def find_held(lock_paths: list[Path], check: Callable[[], None]) -> Iterator[tuple[Path, Finding]]:
    """The locks among them that somebody here holds. What is held is open: one look at all processes spares the rest.

    /proc/locks would be cheaper, but does not show, in a container, what the children of the dead still hold.
    Where the kernel tells of no open file, not even of ours, each lock is asked.
    """
    opened = {(file.st_dev, file.st_ino) for pid in processes.pids() for _, file in processes.open_files(pid)}
    for path in lock_paths:
        check()
        with suppress(FileNotFoundError):
            file = path.lstat()
            if not opened or (file.st_dev, file.st_ino) in opened:
                finding = find_holders(path)
                holders = [holder for holder in finding.holders if holder.verified or holder.state != "unknown"]
                if holders:
                    yield path, finding._replace(holders=holders)


def _find(lock_path: Path, file: os.stat_result, record: Record | None) -> Finding:
    usual_ms = record.usual_ms if record else None
    readers = [_believe(reader, reader_file) for reader, reader_file in living_readers(lock_path)]
    if readers:
        return Finding(readers, shared=True, usual_ms=usual_ms)
    if record is not None and record.state == "held":
        holder = _believe(record, file)
        if holder.verified or not record.is_local() or not processes.can_see():
            return Finding([holder], usual_ms=usual_ms)
    carriers: dict[int, list[int]] = {}
    for pid, locker in carriers_of(file):
        if locker != _UNSEEN:
            carriers.setdefault(locker, []).append(pid)
    return Finding([_named_by_kernel(*found) for found in sorted(carriers.items())], usual_ms=usual_ms)


def _named_by_kernel(locker: int, carriers: list[int]) -> Holder:
    if processes.is_running(locker):
        return Holder(pid=locker, state="running", verified=True)
    return Holder(pid=locker, state="orphaned", verified=True, children=tuple(carriers))


def _believe(record: Record, file: os.stat_result) -> Holder:
    """The holder as far as it can be confirmed. Another machine's or container's pid is never looked up here."""
    if not record.is_local() or not processes.can_see():
        return record.as_holder("unknown", verified=False)
    if record.is_alive():
        confirmed = processes.locker_of(record.pid, file) == record.pid
        return record.as_holder("running" if confirmed else "unknown", verified=confirmed)
    children = tuple(_carriers_for(record, file))
    return record.as_holder("orphaned" if children else "unknown", verified=bool(children), children=children or None)


def orphans_of(lock_path: Path) -> list[int]:
    """Processes that keep the lock of a holder that has ended: its children, or theirs."""
    try:
        main, file = _look_at(lock_path)
    except FileNotFoundError:
        return []
    found = {pid for pid, locker in carriers_of(file) if locker != _UNSEEN and not processes.is_running(locker)}
    for record, record_file in [(main, file), *living_readers(lock_path)]:
        if record is not None and record.state == "held" and record.is_local() and record.is_alive() is False:
            found.update(_carriers_for(record, record_file))
    return sorted(found)


def _carriers_for(ended: Record, file: os.stat_result) -> list[int]:
    """Who carries the lock that this writer took before it ended: of the dead the kernel may not tell the number."""
    return [pid for pid, locker in carriers_of(file) if locker in (_UNSEEN, ended.pid)]


def _look_at(lock_path: Path) -> tuple[Record | None, os.stat_result]:
    descriptor = os.open(lock_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return read_record(descriptor), os.fstat(descriptor)
    finally:
        os.close(descriptor)


def carriers_of(file: os.stat_result) -> Iterator[tuple[int, int]]:
    """(pid, pid that took the lock) for every living process whose descriptors carry a flock on this file."""
    for pid in processes.pids():
        locker = processes.locker_of(pid, file)
        if locker is not None:
            yield pid, locker
