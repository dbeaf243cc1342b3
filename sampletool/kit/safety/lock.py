"""A lock between processes: exclusive or shared, with a deadline, and freed by any death.

    with Lock(path).exclusively(timeout_seconds=10) as hold:    # LockHeld names the holder
        ...

The kernel's flock on a file is the mechanism, and its queue is where we wait (see flock.py). The file is never removed:
that would split its waiters over two files. Where readers share a lock, everybody queues at a *gate* first, takes
the lock and leaves the gate: a stream of readers cannot starve a writer. Nobody waits at the gate while holding the
lock. What is written into the lock file is for people and for retry loops (see lock_record.py), never for safety.
The logger of this module says what a lock waits for: at INFO what a waiting person wants to know, at DEBUG the rest.
"""

import errno
import logging
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from .errors import (
    DeadlineExceeded,
    Deadlock,
    Interrupted,
    LocksUnsupported,
    LockTimeout,
    SafetyError,
    UnsafePath,
)
from .flock import EXCLUSIVE, SHARED, Waiter, try_lock, unlock
from .lock_record import READERS, Record, describe_me, read_record, registered, write_record
from .lockless_thread import is_lockless
from .signals import Signals

MakeLock = Callable[[Path, str], "Lock"]
log = logging.getLogger(__name__)
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_GATE_SECONDS = 0.25
"""The gate is tried this long whatever the timeout: its owner keeps it for microseconds unless it is queueing."""
_NOTICE_SECONDS = 0.5
ANCESTORS_LOCKS = "SAFETY_HELD_LOCKS"
"""Set for children: the locks that are held for as long as they run, one a line."""


class Hold:
    """A lock that this process holds until the `with` block ends."""

    def __init__(self, descriptor: int, waited_ms: int, signals: Signals, recorded: bool) -> None:
        record = read_record(descriptor) if recorded else None
        self.signals = signals
        self.descriptors: tuple[int, ...] = (descriptor,)
        """What a child inherits to keep the lock for as long as it lives."""
        self.waited_ms = waited_ms
        self.crashed = record if record and record.state == "held" else None
        """The previous holder, if it died without releasing."""
        self.usual_ms = record.usual_ms if record else None
        """How long the last hold took that did work."""
        self.did_work = True
        """For a holder that had nothing to do to set to False: its time says nothing about the next one's."""


class Lock:
    """One lock file; `name` is what people call it. The directory is the caller's to make."""

    def __init__(self, path: Path, name: str = "", me: Record | None = None, signals: Signals | None = None) -> None:
        self._path = path
        self._name = name or path.name
        self._me = me or describe_me()
        self._signals = signals or Signals()

    @contextmanager
    def exclusively(self, timeout_seconds: float = 10.0, *, recorded: bool = True) -> Iterator[Hold]:
        """Be alone. LockHeld when that cannot be had in time.

        Not recorded: the kernel alone names the holder, and a record that is there is left to the next who reads it.
        For a process that takes the lock thousands of times, each time for less than a record takes.
        """
        hold = self._acquire(EXCLUSIVE, timeout_seconds, recorded=recorded)
        descriptor, began = hold.descriptors[0], time.monotonic()
        try:
            if recorded:
                write_record(descriptor, self._me, hold.usual_ms)
            yield hold
            if hold.did_work:
                hold.usual_ms = round((time.monotonic() - began) * 1000)
        finally:
            if recorded:
                write_record(descriptor, self._me, hold.usual_ms, "free")
            unlock(descriptor)
            os.sched_yield()  # to the waiter that this has woken, or a loop takes the lock back before it
            self._leave(descriptor)

    @contextmanager
    def shared(self, timeout_seconds: float = 10.0) -> Iterator[Hold]:
        """Be among readers. Left by closing, never by unlocking: a living child keeps its share."""
        hold = self._acquire(SHARED, timeout_seconds)
        descriptor = hold.descriptors[0]
        try:
            if hold.crashed is not None:
                write_record(descriptor, self._me, hold.usual_ms, "free")
            with registered(self._path, self._me) as reader:
                hold.descriptors = (descriptor, reader)
                yield hold
        finally:
            self._leave(descriptor)

    def _acquire(self, operation: int, timeout_seconds: float, *, recorded: bool = True) -> Hold:
        if is_lockless():
            # A mistake in the code of a command, so it gets a traceback.
            raise RuntimeError(f"take the lock {self._name!r} outside of the function that blocks")
        if str(self._path) in os.environ.get(ANCESTORS_LOCKS, "").split("\n"):
            raise Deadlock(self._name)
        asked = time.monotonic()
        left = self._signals.seconds_left
        patience = timeout_seconds if left is None else min(timeout_seconds, left)
        log.debug("lock %s: asked for by pid %d", self._name, self._me.pid)
        try:
            is_shared = operation == SHARED or os.path.exists(f"{self._path}{READERS}")
            with self._gate(asked + max(patience, _GATE_SECONDS)) if is_shared else nullcontext():
                descriptor = self._take(self._path, operation, asked + patience)
        except _TooLate:
            raise self._refusal(time.monotonic() - asked, timeout_seconds, patience) from None
        except OSError as error:
            if error.errno in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP):
                raise LocksUnsupported(str(self._path), (error.strerror or str(error)).lower()) from error
            error.filename = str(self._path)
            raise
        hold = Hold(descriptor, round((time.monotonic() - asked) * 1000), self._signals, recorded)
        log.debug("lock %s: got by pid %d after %d ms", self._name, self._me.pid, hold.waited_ms)
        return hold

    @contextmanager
    def _gate(self, deadline: float) -> Iterator[None]:
        """Wait first in the queue, so that new readers cannot overtake a waiting writer."""
        gate = self._take(self._path.with_name(f"{self._path.name}.gate"), EXCLUSIVE, deadline)
        try:
            yield
        finally:
            unlock(gate)
            os.close(gate)

    def _take(self, path: Path, operation: int, deadline: float) -> int:
        """A locked descriptor of the file that has this path then."""
        while True:
            descriptor, is_taken = os.open(path, _FLAGS, 0o600), False
            try:
                is_taken = self._wait(descriptor, operation, deadline) and _is_current(descriptor, path)
            finally:
                if not is_taken:
                    os.close(descriptor)
            if is_taken:
                return descriptor
            if time.monotonic() >= deadline or self._signals.is_over():
                raise _TooLate

    def _wait(self, descriptor: int, operation: int, deadline: float) -> bool:
        """Try at once, then wait in the kernel's queue."""
        if self._signals.received is None and try_lock(descriptor, operation):
            return True
        if (now := time.monotonic()) >= deadline or self._signals.is_over():
            return False
        self._say_waiting(logging.DEBUG)
        notice = now + _NOTICE_SECONDS
        with Waiter(descriptor, operation) as waiter:
            while not waiter.has_ended and not self._signals.is_over() and (now := time.monotonic()) < deadline:
                if now >= notice:
                    self._say_waiting(logging.INFO)
                    notice = deadline
                self._signals.wait(min(deadline, notice) - now, [waiter.ended])
            return waiter.has_won()

    def _leave(self, descriptor: int) -> None:
        os.close(descriptor)
        log.debug("lock %s: released by pid %d", self._name, self._me.pid)

    def _refusal(self, waited_seconds: float, timeout_seconds: float, patience: float) -> SafetyError:
        """What ended the wait: a signal, the limit of the whole call if it left less time, or else the lock's own."""
        if self._signals.received is not None:
            return Interrupted(self._signals.received)
        from .lock_owners import find_owners

        owners = find_owners(self._path)
        held = LockTimeout(self._name, owners, waited_seconds, timeout_seconds)
        return DeadlineExceeded(self._signals.timeout_seconds, held) if patience < timeout_seconds else held

    def _say_waiting(self, level: int) -> None:
        if log.isEnabledFor(level):
            from .lock_owners import find_owners

            holders = find_owners(self._path).holders
            named = "; ".join(str(holder) for holder in holders)
            log.log(level, "lock %s: waiting for %s", self._name, named or "a process that is just taking it")


class _TooLate(Exception):
    """The lock could not be had in time."""


def _is_current(descriptor: int, path: Path) -> bool:
    """Whether the path still names the file that was locked. UnsafePath if it is not a lock file."""
    locked = os.fstat(descriptor)
    if not stat.S_ISREG(locked.st_mode):
        raise UnsafePath(str(path), "a lock file has to be a regular file")
    if locked.st_uid != os.geteuid() or locked.st_mode & 0o022:
        raise UnsafePath(str(path), "the lock file belongs to another user, or others may write to it")
    if locked.st_nlink > 1:
        raise UnsafePath(str(path), "the lock file has another name as well (a hard link)")
    with suppress(FileNotFoundError):
        return os.path.samestat(path.lstat(), locked)
    return False
