"""A lock between processes. It is released even if its holder is killed.

    with Lock(path).exclusively(timeout_seconds=10) as hold:
        ...  # no other process holds this lock

The lock is a lock of the kernel (flock) on a file, see flock.py. The kernel releases it when no
process has the locked file open any more, however these processes ended.

Terms:

* The *lock file* is the file at the path of a lock. It is created when it is first needed, and
  never deleted. Its existence means nothing: only the kernel knows whether a process holds it.
* A *holder* has taken the lock and not released it. A *writer* holds it exclusively, alone. A
  *reader* shares it with other readers.
* A *record* describes a holder, in the lock file, see lock_record.py. It is there for people and
  for retry loops. No decision about who gets the lock depends on it.
* The *gate* is a second lock file. Everybody who asks for a lock that readers have used takes the
  gate first, and releases it when they have got the lock or given up.

The steps to take a lock:

1. Refuse if a process that started this one holds it, because that would be a deadlock.
2. If readers use this lock, wait at the gate. Without it, new readers could keep joining the
   current ones, and a writer would never see a moment without readers.
3. Open the lock file. If it has several names (hard links), replace it: see below.
4. Wait for the kernel's lock on the open file.
5. Check that the path still leads to this file. If it does not, go back to step 3: another process
   may have locked the file that the path leads to now.

Several names: `cp -al` copies a directory with hard links. Afterwards, a lock file has a name in
both copies, so commands in one copy would wait for those in the other one. The process that finds
such a file first waits until it has locked it exclusively. Then it puts a new file in its place,
in one directory; the other directory keeps the old file. A file that another process has locked is
never replaced, because its holder would not exclude the users of the new file. And nothing is
written into a file with several names: another user may have linked it to a file with your data.

Rejected designs:

* Delete the lock file at the end. A process that waits for the deleted file and a process that
  creates a new one would both get the lock.
* Create a file to lock, and delete it to unlock. After kill -9, the file would stay, and the pid in
  it could later be that of another process.
* POSIX locks (fcntl.lockf). Child processes do not inherit them. Also, the first descriptor of the
  file that the process closes releases them, even one that an unrelated library opened.
* Refuse lock files with several names. After `cp -al`, all commands failed in both copies.

The logger of this module reports who is waited for: long waits with level INFO, and everything else
with level DEBUG.
"""

import errno
import logging
import math
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .atomic_file import opened, replace, sweep
from .errors import (
    DeadlineExceeded,
    Deadlock,
    Interrupted,
    LocksUnsupported,
    LockTimeout,
    NotFlushed,
    SafetyError,
    UnsafePath,
)
from .flock import EXCLUSIVE, SHARED, Waiter, try_lock, unlock
from .lock_owners import find_owners
from .lock_record import (
    Record,
    describe_me,
    read_record,
    readers_of,
    registered,
    write_record,
)
from .lockless_thread import is_lockless
from .signals import Signals

MakeLock = Callable[[Path, str], "Lock"]
"""A function that returns the lock with this path and name."""

ANCESTORS_LOCKS = "SAFETY_HELD_LOCKS"
"""The environment variable that tells child processes which locks are held for as long as they run.

It contains the absolute paths of the lock files, one per line. children.py sets it.
"""

log = logging.getLogger(__name__)

# Another user may have put something else at the path. Without O_NOFOLLOW, a link would be
# followed. Without O_NONBLOCK, opening a FIFO could hang on systems other than Linux. Without
# O_CLOEXEC, every program that this process starts would keep the lock.
_OPEN_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW_FILE_MODE = 0o600
_WRITABLE_BY_OTHERS = 0o022

_SHORT_HOLD_SECONDS = 0.25
"""How long to wait, whatever the timeout, for a file that others usually lock for microseconds.

These are the gate, and a lock file that is being replaced. Without this, a caller that does not
wait at all would sometimes be refused although nobody holds the lock.
"""

_NOTICE_SECONDS = 0.5
"""How long a wait takes before it is reported to people."""

_NO_LOCKS_ERRORS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
"""The errors of flock() on file systems without locks, such as some network file systems."""


@dataclass
class Hold:
    """A lock that this process holds until the `with` block ends."""

    descriptors: tuple[int, ...]
    """The descriptors for a child process to inherit, which then keeps the lock until it exits."""
    waited_ms: int
    """How long this process waited for the lock."""
    signals: Signals
    """What can ask this process to stop. Check it before you begin something that takes long."""
    previous_record: Record | None = None
    """The record in the lock file when the lock was taken. None if it was not read."""
    measures_duration: bool = True
    """Whether the duration of this hold becomes the usual one. See ignore_duration()."""

    @property
    def crashed(self) -> Record | None:
        """The record of the previous writer if it died without releasing the lock, else None."""
        previous = self.previous_record
        if previous is not None and previous.state == "held":
            return previous
        return None

    @property
    def usual_ms(self) -> int | None:
        """How long the last hold took in which work was done, or None if that is not known."""
        if self.previous_record is None:
            return None
        return self.previous_record.usual_ms

    def ignore_duration(self) -> None:
        """Leave the usual duration of a hold as it is. Call this if there was nothing to do.

        The duration of a hold is recorded, and others use it to estimate when to try again. After a
        build that found everything up to date, they would try again after milliseconds.
        """
        self.measures_duration = False


class Lock:
    """A lock, identified by the path of its lock file. The directory of the path must exist.

    `name` is for messages and errors; by default, it is the name of the file. `me` describes this
    process to others. `signals` can end a wait.
    """

    def __init__(
        self,
        path: Path,
        name: str = "",
        me: Record | None = None,
        signals: Signals | None = None,
    ) -> None:
        self._path = path
        self._name = name if name else path.name
        self._me = me if me is not None else describe_me()
        self._signals = signals if signals is not None else Signals()

    @contextmanager
    def exclusively(
        self,
        timeout_seconds: float = 10.0,
        *,
        recorded: bool = True,
    ) -> Iterator[Hold]:
        """Hold the lock alone until the block ends.

        With a timeout of 0, fail at once if another process holds the lock. With `recorded=False`,
        neither read nor write a record, which saves time if you take a lock thousands of times.
        Others then know only the pid of the holder, and a crash before is reported to a later one.

        Raise LockTimeout if the lock is not free in time, DeadlineExceeded if the time limit of
        `signals` is over before that, and Interrupted after a signal. Raise Deadlock if a process
        that started this one holds the lock. Raise UnsafePath if there is something else than a
        lock file of this user, LocksUnsupported if the file system has no locks, and OSError if the
        lock file cannot be opened. Raise RuntimeError in a LocklessThread.

        Do not take the same lock twice in one process. Each hold opens the lock file again, and to
        the kernel these are two unrelated holders. So the second one waits for the first one, and
        raises LockTimeout, which names this process as the holder.
        """
        descriptor, waited_ms = self._acquire(EXCLUSIVE, timeout_seconds)
        try:
            if recorded:
                with self._recorded_hold(descriptor, waited_ms) as hold:
                    yield hold
            else:
                yield Hold(
                    descriptors=(descriptor,),
                    waited_ms=waited_ms,
                    signals=self._signals,
                )
        finally:
            # Closing would not be enough: a process that the block has left running may have
            # inherited the descriptor, and would keep the lock.
            unlock(descriptor)
            # A waiter is awake now, but not running yet. Without this, a process that takes the
            # lock in a loop would take it back first. On a busy machine, that kept the others out
            # for seconds.
            os.sched_yield()
            self._close(descriptor)

    @contextmanager
    def shared(self, timeout_seconds: float = 10.0) -> Iterator[Hold]:
        """Hold the lock together with other readers until the block ends.

        No writer holds it at the same time, and a reader does not overtake a waiting writer. Raise
        the same errors as `exclusively`, and UnsafeDirectory if another user could change the
        records of the readers.
        """
        descriptor, waited_ms = self._acquire(SHARED, timeout_seconds)
        try:
            previous_record = read_record(descriptor)
            with registered(self._path, self._me) as reader_descriptor:
                hold = Hold(
                    descriptors=(descriptor, reader_descriptor),
                    waited_ms=waited_ms,
                    signals=self._signals,
                    previous_record=previous_record,
                )
                if hold.crashed is not None:
                    # Report the crash to one holder only, as a writer would.
                    write_record(descriptor, self._me, usual_ms=hold.usual_ms, state="free")
                yield hold
        finally:
            # Closed, but not unlocked: a child that inherited the descriptor keeps the lock. It may
            # still read what the lock protects.
            self._close(descriptor)

    @contextmanager
    def _recorded_hold(self, descriptor: int, waited_ms: int) -> Iterator[Hold]:
        """Describe this process in the lock file until the block ends, and measure the duration.

        The duration is not recorded if the block raises an error. Work that failed may have ended
        early, so its duration says nothing about the next holder's.
        """
        hold = Hold(
            descriptors=(descriptor,),
            waited_ms=waited_ms,
            signals=self._signals,
            previous_record=read_record(descriptor),
        )
        start = time.monotonic()
        write_record(descriptor, self._me, usual_ms=hold.usual_ms, state="held")
        measured_ms = None
        try:
            yield hold
            if hold.measures_duration:
                measured_ms = _milliseconds_since(start)
        finally:
            # Without a measurement, keep the usual duration that was recorded before.
            new_usual_ms = hold.usual_ms if measured_ms is None else measured_ms
            # This has to come before the release. After it, this would overwrite the record of the
            # next holder.
            write_record(descriptor, self._me, usual_ms=new_usual_ms, state="free")

    def _acquire(self, operation: int, timeout_seconds: float) -> tuple[int, int]:
        """Take the lock. Return a descriptor of the locked file, and the milliseconds it took."""
        self._refuse_lockless_thread()
        self._refuse_deadlock()
        asked_at = time.monotonic()
        patience_seconds = self._limit_patience(timeout_seconds)
        deadline = asked_at + patience_seconds
        log.debug("lock %s: asked for by pid %d", self._name, self._me.pid)
        try:
            if self._has_gate(operation):
                # Nobody keeps the gate for long, except for those who wait for the lock. So wait
                # for it a moment even if the timeout is 0.
                gate_deadline = max(deadline, asked_at + _SHORT_HOLD_SECONDS)
                with self._gate(gate_deadline):
                    descriptor = self._open_locked(self._path, operation, deadline)
            else:
                descriptor = self._open_locked(self._path, operation, deadline)
        except _TooLate:
            waited_seconds = time.monotonic() - asked_at
            raise self._refusal(waited_seconds, timeout_seconds, patience_seconds) from None
        waited_ms = _milliseconds_since(asked_at)
        log.debug("lock %s: got by pid %d after %d ms", self._name, self._me.pid, waited_ms)
        return descriptor, waited_ms

    def _refuse_lockless_thread(self) -> None:
        """Raise RuntimeError in a thread whose caller may give it up. See lockless_thread.py."""
        if is_lockless():
            # A mistake in the code of a command, so it gets a traceback.
            raise RuntimeError(f"take the lock {self._name!r} outside of the function that blocks")

    def _refuse_deadlock(self) -> None:
        """Raise Deadlock if a process that started this one keeps the lock until this one exits."""
        ancestors_locks = os.environ.get(ANCESTORS_LOCKS, "").split("\n")
        if os.path.abspath(self._path) in ancestors_locks:
            raise Deadlock(self._name)

    def _limit_patience(self, timeout_seconds: float) -> float:
        """Return the time to wait: the timeout, or less if the limit of all work ends before."""
        seconds_left = self._signals.seconds_left
        if seconds_left is None:
            return timeout_seconds
        return min(timeout_seconds, seconds_left)

    def _has_gate(self, operation: int) -> bool:
        """Return whether to wait at the gate: if this is a reader, or readers have used the lock.

        The first reader creates the directory for records of readers, and it stays. Most locks
        never have readers, and skipping the gate saves their users a second file and lock.
        """
        # A writer that is already waiting when the very first reader comes is not at the gate. So
        # readers can overtake this one writer.
        return operation == SHARED or os.path.exists(readers_of(self._path))

    @contextmanager
    def _gate(self, deadline: float) -> Iterator[None]:
        """Hold the gate until the block ends. Nobody waits for the gate while holding the lock."""
        gate_path = self._path.with_name(f"{self._path.name}.gate")
        descriptor = self._open_locked(gate_path, EXCLUSIVE, deadline)
        try:
            yield
        finally:
            unlock(descriptor)
            os.close(descriptor)

    def _open_locked(self, path: Path, operation: int, deadline: float) -> int:
        """Lock the file at this path, and return its descriptor.

        Raise _TooLate if the file is not free before the deadline or a signal.
        """
        while True:
            # After `cp -al`, two directories share one lock file. See the module docstring.
            if _has_several_names(path):
                self._replace_file(path, deadline)
            descriptor = os.open(path, _OPEN_FLAGS, _NEW_FILE_MODE)
            try:
                self._wait(path, descriptor, operation, deadline)
                is_current = _is_current(path, descriptor)
            except BaseException:
                os.close(descriptor)
                raise
            if is_current:
                return descriptor
            # Another process replaced the file while this one waited for it. Try the new file.
            os.close(descriptor)
            if self._is_too_late(deadline):
                raise _TooLate

    def _replace_file(self, path: Path, deadline: float) -> None:
        """Put a new lock file in the place of one that has several names.

        Raise _TooLate if a process holds the file under one of its names until the deadline.
        """
        with opened(path, _OPEN_FLAGS, _NEW_FILE_MODE) as descriptor:
            refuse_unsafe_lock_file(path, os.fstat(descriptor))
            # In another copy of the directory, a process may be replacing the file just now.
            least_deadline = time.monotonic() + _SHORT_HOLD_SECONDS
            self._wait(path, descriptor, EXCLUSIVE, max(deadline, least_deadline))
            # Look again: another process may have replaced it meanwhile. From here on nobody else
            # can, because only the process that has locked the file replaces it.
            file = os.fstat(descriptor)
            if file.st_nlink > 1 and _leads_to(path, file):
                # A process that was killed here may have left a temporary file.
                sweep(path)
                # If the power fails now, the old file may come back. It is replaced again then.
                with suppress(NotFlushed):
                    replace(path, b"")

    def _wait(self, path: Path, descriptor: int, operation: int, deadline: float) -> None:
        """Lock the open file: try once, then wait in the kernel's queue.

        Raise _TooLate if the file is not free before the deadline or a signal.
        """
        with _path_in_errors(path):
            # After a signal, do not even take a lock that is free.
            if self._signals.received is None and try_lock(descriptor, operation):
                return
            if self._is_too_late(deadline):
                raise _TooLate
            self._log_holders(logging.DEBUG)
            with Waiter(descriptor, operation) as waiter:
                self._watch(waiter, deadline)
                # The waiter may have got the lock in the last moment. Then the deadline or the
                # signal no longer matters: the lock is held, and leaving it would not be faster.
                has_lock = waiter.has_won()
            if not has_lock:
                raise _TooLate

    def _watch(self, waiter: Waiter, deadline: float) -> None:
        """Return when the waiter has ended, the deadline has passed, or a signal has come."""
        notice_at = time.monotonic() + _NOTICE_SECONDS
        while not waiter.has_ended and not self._signals.is_over():
            # Read the clock once for each turn: a negative time to wait would be unlimited.
            now = time.monotonic()
            if now >= deadline:
                return
            if now >= notice_at:
                self._log_holders(logging.INFO)
                # One notice is enough.
                notice_at = math.inf
            self._signals.wait(min(deadline, notice_at) - now, [waiter.end_descriptor])

    def _is_too_late(self, deadline: float) -> bool:
        """Return whether to stop waiting."""
        return time.monotonic() >= deadline or self._signals.is_over()

    def _refusal(
        self,
        waited_seconds: float,
        timeout_seconds: float,
        patience_seconds: float,
    ) -> SafetyError:
        """Return the error that says why the lock was not taken.

        `timeout_seconds` is how long the caller wanted to wait. `patience_seconds` is less if the
        time limit of all its work allowed less.
        """
        if self._signals.received is not None:
            return Interrupted(self._signals.received)
        owners = find_owners(self._path)
        lock_timeout = LockTimeout(self._name, owners, waited_seconds, timeout_seconds)
        if patience_seconds == timeout_seconds:
            return lock_timeout
        # The caller would have waited longer, but the time limit of all its work is over. That
        # error also says what the time was spent on.
        return DeadlineExceeded(self._signals.timeout_seconds, waiting_for=lock_timeout)

    def _log_holders(self, level: int) -> None:
        """Log who holds the lock."""
        # It takes milliseconds to find that out.
        if not log.isEnabledFor(level):
            return
        holders = find_owners(self._path).holders
        names = "; ".join(str(holder) for holder in holders)
        if not names:
            names = "a process that is just taking it"
        log.log(level, "lock %s: waiting for %s", self._name, names)

    def _close(self, descriptor: int) -> None:
        os.close(descriptor)
        log.debug("lock %s: released by pid %d", self._name, self._me.pid)


class _TooLate(Exception):
    """The deadline passed, or a signal came, before the lock was free."""


@contextmanager
def _path_in_errors(path: Path) -> Iterator[None]:
    """Add the path to errors of the block: flock() knows only the descriptor.

    Raise LocksUnsupported if the file system has no locks.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_LOCKS_ERRORS:
            raise LocksUnsupported(str(path), os.strerror(error.errno).lower()) from error
        raise OSError(error.errno, error.strerror, str(path)) from error


def _has_several_names(path: Path) -> bool:
    """Return whether this file has another name as well. Return False if there is no file."""
    try:
        file = path.lstat()
    except FileNotFoundError:
        return False
    # A directory has several names, but cannot be opened as a lock file.
    return stat.S_ISREG(file.st_mode) and file.st_nlink > 1


def _is_current(path: Path, descriptor: int) -> bool:
    """Return whether the locked file is still the lock file at this path, and of no other path.

    Raise UnsafePath if it is not a lock file of this user.
    """
    file = os.fstat(descriptor)
    refuse_unsafe_lock_file(path, file)
    return file.st_nlink <= 1 and _leads_to(path, file)


def refuse_unsafe_lock_file(path: Path, file: os.stat_result) -> None:
    """Raise UnsafePath if the file cannot be a lock file, or if other users can change it."""
    if not stat.S_ISREG(file.st_mode):
        raise UnsafePath(str(path), "a lock file has to be a regular file")
    if file.st_uid != os.geteuid() or file.st_mode & _WRITABLE_BY_OTHERS:
        reason = "the lock file belongs to another user, or others may write to it"
        raise UnsafePath(str(path), reason)


def _leads_to(path: Path, file: os.stat_result) -> bool:
    """Return whether the path leads to this file, and not to another one or to none."""
    try:
        return os.path.samestat(path.lstat(), file)
    except FileNotFoundError:
        return False


def _milliseconds_since(started_at: float) -> int:
    """Return the time since this value of `time.monotonic()`."""
    return round((time.monotonic() - started_at) * 1000)
