"""Which processes hold a lock: what the records say, confirmed by the kernel where it can be asked.

On Linux the `lock:` line in /proc/PID/fdinfo names the process that took a lock, for every descriptor that carries
it and for no other. Unknown beats wrong: a name that cannot be confirmed is reported as not verified.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from ..contract.lock_held import Holder, Owners
from . import processes
from .atomic_file import opened
from .flock import SHARED, try_lock
from .lock_record import Record, living_readers, read_record

_TRIES = 3
_BETWEEN_TRIES_SECONDS = 0.005
_UNSEEN = 0
"""What the kernel calls a process of another pid namespace; inside a container also one that has ended."""
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def find_owners(lock_path: Path) -> Owners:
    """Looks again if nobody can be confirmed: the lock may have changed hands between two looks."""
    owners = Owners([])
    with suppress(FileNotFoundError):
        for attempt in range(_TRIES):
            if attempt:
                time.sleep(_BETWEEN_TRIES_SECONDS)
            owners = _look(lock_path)
            if any(holder.verified for holder in owners.holders):
                break
    return owners


def find_held(lock_paths: list[Path], check: Callable[[], None]) -> Iterator[tuple[Path, Owners]]:
    """Those of the locks that are held.

    A held lock file is open in some process, so all processes are looked at once, and files that nobody has open are
    skipped. (/proc/locks would be cheaper, but does not show, in a container, what the children of the dead still
    hold.) A process that cannot be seen from here is known by its record, if the lock cannot be had.
    """
    opened = {(file.st_dev, file.st_ino) for pid in processes.pids() for _, file in processes.open_files(pid)}
    for path in lock_paths:
        check()
        with suppress(FileNotFoundError):
            record, file = _read(path)
            is_claimed = record is not None and record.state == "held"
            if (file.st_dev, file.st_ino) in opened or is_claimed or living_readers(path):
                owners = find_owners(path)
                if owners.shared or any(holder.verified for holder in owners.holders) or _is_locked(path):
                    yield path, owners


def orphans_of(lock_path: Path) -> list[int]:
    """Descendants of a holder that has ended, which keep its lock."""
    with suppress(FileNotFoundError):
        orphans = {child for holder in find_owners(lock_path).holders for child in holder.children or ()}
        for pid, locker in carriers_of(_read(lock_path)[1]):
            if locker != _UNSEEN and _has_ended(locker, pid):
                orphans.add(pid)
        return sorted(orphans)
    return []


def carriers_of(file: os.stat_result) -> Iterator[tuple[int, int]]:
    """(pid, pid that took the lock) for every living process whose descriptors carry a flock on this file."""
    for pid in processes.pids():
        locker = processes.locker_of(pid, file)
        if locker is not None:
            yield pid, locker


def _look(lock_path: Path) -> Owners:
    record, file = _read(lock_path)
    usual_ms = record.usual_ms if record else None
    readers = [_believe(*reader) for reader in living_readers(lock_path)]
    if readers:
        return Owners(readers, shared=True, usual_ms=usual_ms)
    if record is not None and record.state == "held":
        holder = _believe(record, file)
        if holder.verified or not record.is_local() or not processes.can_see():
            return Owners([holder], usual_ms=usual_ms)
    carriers: dict[int, list[int]] = {}
    for pid, locker in carriers_of(file):
        if locker != _UNSEEN:
            carriers.setdefault(locker, []).append(pid)
    return Owners([_named_by_kernel(*known) for known in sorted(carriers.items())], usual_ms=usual_ms)


def _named_by_kernel(locker: int, carriers: list[int]) -> Holder:
    if all(_has_ended(locker, carrier) for carrier in carriers):
        return Holder(pid=locker, state="orphaned", verified=True, children=tuple(carriers))
    return Holder(pid=locker, state="running", verified=True)


def _has_ended(locker: int, carrier: int) -> bool:
    """Whether the process that took the lock is gone. One that was started after it was inherited has its pid only."""
    start, inherited = processes.started(locker), processes.started(carrier)
    return start is None or (inherited is not None and start > inherited)


def _believe(record: Record, file: os.stat_result) -> Holder:
    """The holder as far as it can be confirmed. Another machine's or container's pid is never looked up here."""
    if not record.is_local() or not processes.can_see():
        return record.as_holder("unknown", verified=False)
    if record.is_alive():
        confirmed = processes.locker_of(record.pid, file) == record.pid
        return record.as_holder("running" if confirmed else "unknown", verified=confirmed)
    # Of the dead the kernel may not tell the number.
    children = tuple(pid for pid, locker in carriers_of(file) if locker in (_UNSEEN, record.pid))
    return record.as_holder("orphaned" if children else "unknown", verified=bool(children), children=children or None)


def _read(lock_path: Path) -> tuple[Record | None, os.stat_result]:
    with opened(lock_path, _FLAGS) as descriptor:
        return read_record(descriptor), os.fstat(descriptor)


def _is_locked(path: Path) -> bool:
    """The kernel's own answer, had by trying: a caller that does not wait may be refused for that moment."""
    with opened(path, _FLAGS) as descriptor:
        return not try_lock(descriptor, SHARED)
