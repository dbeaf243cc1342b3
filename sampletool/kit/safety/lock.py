"""A named lock between processes: exclusive or shared, with a deadline, fair, and freed by any death.

The kernel's flock is the mechanism, taken through filelock (shared: directly, filelock has none). Lock files are
never removed: that would split their waiters over two files. Calling order: wait for the *gate*, then for the lock,
then leave the gate. Polling alone let one process of four take 720 of 755 turns; behind the gate each takes its
turn, and a stream of readers cannot starve a writer. Nobody waits for the gate while holding the lock. What is
written into the lock file is for people and for retry loops (see holder.py), never for safety.
"""

import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from filelock import FileLock, Timeout

from ..contract.errors import Interrupted, NestedCall, TimedOut, ToolError
from ..contract.file_errors import LocksUnsupported, UnsafePath, from_os_error
from ..contract.lock_held import LockHeld
from ..program import variable
from .lock_owners import find_holders
from .lock_record import Record, began_now, read_record, registered, write_free, write_record
from .signals import Signals

_SHARED = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_POLL_SECONDS = 0.01
_GATE_SECONDS = 0.25
"""The gate is tried this long whatever the timeout: its owner keeps it for microseconds unless it is queueing."""
_NOTICE_SECONDS = 0.5
ANCESTORS_LOCKS = variable("LOCKS")
"""Set for children: the locks that are held for as long as they run, one a line."""

Story = Callable[[str, bool], None]
"""Told what happens to a lock; True marks what a waiting person wants to know."""


class Hold(NamedTuple):
    """A lock that is ours until the `with` block ends."""

    waited_ms: int
    crashed: Record | None
    """The previous holder, if it died without releasing."""
    descriptors: tuple[int, ...]
    """What a child inherits to keep the lock for as long as it lives."""


class _Replaced(Exception):
    """The path names another file than the one that was just locked."""


class Lock:
    """One lock file; `name` is what people call it. The directory is the caller's to make."""

    def __init__(self, path: Path, name: str, me: Record, signals: Signals, story: Story) -> None:
        self._path = path
        self._name = name
        self._me = me
        self._signals = signals
        self._story = story
        self._descriptor = -1
        self._crashed: Record | None = None
        self._usual_ms: int | None = None

    @contextmanager
    def exclusively(self, timeout_seconds: float) -> Iterator[Hold]:
        """Be alone. LockHeld when that cannot be had in time."""
        lock = _native(self._path, self._stamp)
        waited_ms = self._enter(lambda seconds: self._take_native(lock, seconds), timeout_seconds)
        began = time.monotonic()
        try:
            yield Hold(waited_ms, self._crashed, (self._descriptor,))
            self._usual_ms = round((time.monotonic() - began) * 1000)
        finally:
            with suppress(OSError):
                write_free(self._descriptor, self._me, self._usual_ms)
            lock.release()
            self._story(f"lock {self._name}: released by pid {self._me.pid}", False)

    @contextmanager
    def shared(self, timeout_seconds: float) -> Iterator[Hold]:
        """Be among readers. Left by closing, never by unlocking: a living child keeps its share."""
        try:
            waited_ms = self._enter(self._take_shared, timeout_seconds)
            with registered(self._path, self._me) as reader:
                yield Hold(waited_ms, self._crashed, (self._descriptor, reader))
        finally:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1
                self._story(f"lock {self._name}: left by reader {self._me.pid}", False)

    def _enter(self, take: Callable[[float], bool], timeout_seconds: float) -> int:
        """Queue at the gate, take the lock, leave the gate; how long that took, in milliseconds."""
        if str(self._path) in os.environ.get(ANCESTORS_LOCKS, "").split("\n"):
            raise NestedCall(lock=self._name)
        asked = time.monotonic()
        left = self._signals.seconds_left
        patience = timeout_seconds if left is None else min(timeout_seconds, left)
        gate_path = self._path.with_name(f"{self._path.name}.gate")
        gate = _native(gate_path, lambda descriptor: _must_be_ours(descriptor, gate_path))
        self._story(f"lock {self._name}: asked for by pid {self._me.pid}", False)

        def waited() -> float:
            return time.monotonic() - asked

        try:
            if not self._wait(lambda seconds: self._take_native(gate, seconds), max(patience, _GATE_SECONDS)):
                raise self._held(waited(), timeout_seconds, patience)
            try:
                if not self._wait(take, max(0.0, patience - waited())):
                    raise self._held(waited(), timeout_seconds, patience)
            finally:
                gate.release()
        except OSError as error:
            raise _lock_error(error, self._path) from error
        self._story(f"lock {self._name}: got by pid {self._me.pid} after {round(waited() * 1000)} ms", False)
        return round(waited() * 1000)

    def _wait(self, take: Callable[[float], bool], seconds: float) -> bool:
        """Try at once, then say who is waited for, then wait on."""
        deadline = time.monotonic() + seconds
        if take(0.0):
            return True
        if seconds == 0:
            return False
        self._story(self._waiting(), False)
        if take(min(seconds, _NOTICE_SECONDS)):
            return True
        if seconds > _NOTICE_SECONDS:
            self._story(self._waiting(), True)
        return take(max(0.0, deadline - time.monotonic()))

    def _take_native(self, lock: FileLock, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            try:
                lock.acquire(timeout=max(0.0, deadline - time.monotonic()), cancel_check=self._signals.is_over)
                return True
            except Timeout:
                return False
            except _Replaced:
                if time.monotonic() >= deadline:
                    return False
                self._pause(deadline)

    def _take_shared(self, seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while True:
            descriptor = os.open(self._path, _SHARED, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                self._look(descriptor)
            except (BlockingIOError, _Replaced):
                os.close(descriptor)
                if time.monotonic() >= deadline or self._signals.is_over():
                    return False
                self._pause(deadline)
            except BaseException:
                os.close(descriptor)
                raise
            else:
                if self._crashed is not None:
                    write_free(descriptor, self._me, self._usual_ms)
                self._descriptor = descriptor
                return True

    def _stamp(self, descriptor: int) -> None:
        self._look(descriptor)
        write_record(descriptor, began_now(self._me, self._usual_ms))
        self._descriptor = descriptor

    def _look(self, descriptor: int) -> None:
        """Is this still the file that everybody locks, and did the last holder leave in order?"""
        _must_be_ours(descriptor, self._path)
        record = read_record(descriptor)
        self._usual_ms = record.usual_ms if record else None
        self._crashed = record if record and record.state == "held" else None

    def _pause(self, deadline: float) -> None:
        self._signals.wait(min(_POLL_SECONDS, max(0.0, deadline - time.monotonic())))

    def _held(self, waited_seconds: float, timeout_seconds: float, patience: float) -> ToolError:
        """What ended the wait: a signal, the limit of the whole call if it left less time, or else the lock's own."""
        if self._signals.received is not None:
            return Interrupted(self._signals.received)
        finding = find_holders(self._path)
        held = LockHeld(
            self._name,
            finding.holders,
            shared=finding.shared,
            waited_ms=round(waited_seconds * 1000),
            timeout_ms=round(timeout_seconds * 1000),
            usual_ms=finding.usual_ms,
        )
        return TimedOut(self._signals.timeout_seconds, held) if patience < timeout_seconds else held

    def _waiting(self) -> str:
        holders = find_holders(self._path).holders
        named = "; ".join(f"{holder.command or 'a call'} ({holder.say()})" for holder in holders)
        return f"lock {self._name}: waiting for {named or 'another call that is just taking it'}"


def _native(path: Path, on_acquired: Callable[[int], None]) -> FileLock:
    """A kernel lock or an error: the hook and the preserve flag forbid filelock's fall-back to lock files."""
    return FileLock(path, mode=0o600, poll_interval=_POLL_SECONDS, on_acquired=on_acquired, preserve_lock_file=True)


def _must_be_ours(descriptor: int, path: Path) -> None:
    held = os.fstat(descriptor)
    if not stat.S_ISREG(held.st_mode):
        raise UnsafePath(str(path), "a lock file has to be a regular file")
    if held.st_uid != os.geteuid() or held.st_mode & 0o022:
        raise UnsafePath(str(path), "the lock file belongs to somebody else, or others may write to it")
    with suppress(FileNotFoundError):
        named = path.lstat()
        if (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino):
            return
    raise _Replaced


def _lock_error(error: OSError, path: Path) -> ToolError:
    if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
        return LocksUnsupported(str(path), (error.strerror or str(error)).lower())
    return from_os_error(error, str(path))
