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
    listed_as_reader,
    read_record,
    reader_directory_of,
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
wait at all would sometimes be refused although the lock is free.
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
    ignores_duration: bool = False
    """Whether the duration of this hold is not recorded. See ignore_duration()."""

    @property
    def crashed_writer(self) -> Record | None:
        """The record of the previous writer if it died without releasing the lock, else None."""
        # A writer that releases the lock changes the state to "free".
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
        """Do not record the duration of this hold. Call this if there was nothing to do.

        Usually the duration is recorded, and others use it to estimate when to try again. After a
        build that found everything up to date, they would try again after milliseconds.
        """
        self.ignores_duration = True


class Lock:
    """A lock, identified by the path of its lock file. The directory of the path must exist.

    `name` is for messages and errors; by default, it is the name of the file. `me` is the record
    that describes this process to others. `signals` can end a wait.
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
        Others then know only the pid of the holder. If the previous holder crashed, only the next
        recorded holder learns of it.

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
            # The lock file has room for one record, and there can be many readers. So each of them
            # describes itself in a file of its own.
            with listed_as_reader(self._path, self._me) as reader_descriptor:
                hold = Hold(
                    descriptors=(descriptor, reader_descriptor),
                    waited_ms=waited_ms,
                    signals=self._signals,
                    previous_record=previous_record,
                )
                if hold.crashed_writer is not None:
                    # This holder learns of the crash. Replace the record of the writer that died,
                    # so that later holders do not learn of the same crash again. Another reader may
                    # write at the same time, but it writes a "free" record too.
                    write_record(descriptor, self._me, usual_ms=hold.usual_ms, state="free")
                yield hold
        finally:
            # Close, but do not unlock. A child that inherited the descriptor may still read what
            # the lock protects. Closing leaves it the lock, and unlocking would take it away.
            self._close(descriptor)

    @contextmanager
    def _recorded_hold(self, descriptor: int, waited_ms: int) -> Iterator[Hold]:
        """Describe this process in the lock file until the block ends, and yield its hold.

        At the end, record how long the hold took. Keep the duration that was recorded before if the
        block raises an error, or if it calls `hold.ignore_duration`.
        """
        hold = Hold(
            descriptors=(descriptor,),
            waited_ms=waited_ms,
            signals=self._signals,
            previous_record=read_record(descriptor),
        )
        started_at = time.monotonic()
        usual_ms = hold.usual_ms
        write_record(descriptor, self._me, usual_ms=usual_ms, state="held")
        try:
            yield hold
            # After an error, this line is not reached: work that failed may have ended early, so
            # its duration says nothing about the next holder's.
            if not hold.ignores_duration:
                usual_ms = _milliseconds_since(started_at)
        finally:
            # The caller still has the lock. After its release, this would overwrite the record of
            # the next holder.
            write_record(descriptor, self._me, usual_ms=usual_ms, state="free")

    def _acquire(self, operation: int, timeout_seconds: float) -> tuple[int, int]:
        """Open the lock file and lock it. `operation` is EXCLUSIVE or SHARED.

        Return the descriptor of the locked file, and how many milliseconds this took. Raise the
        errors that `exclusively` lists.
        """
        self._refuse_lockless_thread()
        self._refuse_deadlock()
        asked_at = time.monotonic()
        seconds_to_wait = self._seconds_to_wait(timeout_seconds)
        deadline = asked_at + seconds_to_wait
        log.debug("lock %s: asked for by pid %d", self._name, self._me.pid)
        try:
            # The gate keeps the order between readers and writers. No process waits for the gate
            # while it holds the lock, so two processes cannot wait for each other.
            with self._gate(operation, deadline):
                descriptor = self._open_locked(self._path, operation, deadline)
        except _TooLate:
            raise self._refusal(
                waited_seconds=time.monotonic() - asked_at,
                timeout_seconds=timeout_seconds,
                is_out_of_time=seconds_to_wait < timeout_seconds,
            ) from None
        waited_ms = _milliseconds_since(asked_at)
        log.debug("lock %s: got by pid %d after %d ms", self._name, self._me.pid, waited_ms)
        return descriptor, waited_ms

    def _refuse_lockless_thread(self) -> None:
        """Raise RuntimeError in a LocklessThread, which must not take a lock.

        Its caller may stop waiting for it. Then it continues, with the lock, until the process
        exits, and its caller does not know.
        """
        if is_lockless():
            # This is a mistake in the code of a command. So it gets a traceback.
            raise RuntimeError(f"take the lock {self._name!r} outside of the function that blocks")

    def _refuse_deadlock(self) -> None:
        """Raise Deadlock if a process that started this one holds the lock.

        It keeps the lock until this process exits, so waiting for the lock would never end.
        """
        ancestors_locks = os.environ.get(ANCESTORS_LOCKS, "").split("\n")
        if os.path.abspath(self._path) in ancestors_locks:
            raise Deadlock(self._name)

    def _seconds_to_wait(self, timeout_seconds: float) -> float:
        """Return the timeout, or the time until the deadline of the whole process if that is less.

        `Signals.limit` sets that deadline, for example for the option --timeout of a command.
        """
        seconds_left = self._signals.seconds_left
        if seconds_left is None:
            return timeout_seconds
        return min(timeout_seconds, seconds_left)

    def _needs_gate(self, operation: int) -> bool:
        """Return whether to wait at the gate: a second lock file that keeps the order of waiters.

        Only locks that have readers need it. The first reader of a lock creates a directory, which
        stays, so its existence shows that there were readers. Most locks never have any, and their
        users need not open a second file.
        """
        # A writer that began to wait before the very first reader came did not see the directory.
        # So readers can overtake this one writer.
        return operation == SHARED or os.path.exists(reader_directory_of(self._path))

    @contextmanager
    def _gate(self, operation: int, deadline: float) -> Iterator[None]:
        """Hold the gate until the block ends, if this lock needs a gate.

        The gate is a second lock file. The process that waits for the lock holds the gate, so all
        processes that ask later wait at the gate. Without it, new readers could keep joining the
        current ones, and a writer would wait permanently. Raise _TooLate if the gate is not free in
        time.
        """
        if not self._needs_gate(operation):
            yield
            return
        gate_path = self._path.with_name(f"{self._path.name}.gate")
        # If no process waits for the lock, the gate is held only for a moment. So wait at least
        # that long, even if the timeout is 0.
        end_of_moment = time.monotonic() + _SHORT_HOLD_SECONDS
        descriptor = self._open_locked(gate_path, EXCLUSIVE, max(deadline, end_of_moment))
        try:
            yield
        finally:
            unlock(descriptor)
            os.close(descriptor)

    def _open_locked(self, path: Path, operation: int, deadline: float) -> int:
        """Open the file at this path, lock it, and return its descriptor.

        Raise _TooLate if the file is not free before the deadline or a signal.
        """
        while True:
            # `cp -al` copies a directory with hard links. Then both directories have the same lock
            # file, and commands in one of them would wait for those in the other one.
            if _has_several_names(path):
                self._replace_file(path, deadline)
            descriptor = os.open(path, _OPEN_FLAGS, _NEW_FILE_MODE)
            try:
                self._lock_file(path, descriptor, operation, deadline)
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
        """Put a new lock file in the place of one that has several names (hard links).

        The other names keep the old file. Raise _TooLate if the old file is not free before the
        deadline or a signal: if a process holds it, users of the new file would not wait for it.
        """
        # Another process may be replacing the file just now, which takes only a moment. So wait at
        # least that long, even if the timeout is 0.
        end_of_moment = time.monotonic() + _SHORT_HOLD_SECONDS
        deadline = max(deadline, end_of_moment)
        with opened(path, _OPEN_FLAGS, _NEW_FILE_MODE) as descriptor:
            refuse_unsafe_lock_file(path, os.fstat(descriptor))
            self._lock_file(path, descriptor, EXCLUSIVE, deadline)
            status = os.fstat(descriptor)
            # This is false if another process has replaced the file while this one waited.
            still_has_several_names = status.st_nlink > 1 and _is_name_of(path, status)
            if still_has_several_names:
                _replace_with_empty_file(path)

    def _lock_file(self, path: Path, descriptor: int, operation: int, deadline: float) -> None:
        """Lock an open file: try once, then wait in the kernel's queue.

        Raise _TooLate if the file is not free before the deadline or a signal. The caller then has
        to close the descriptor. Otherwise, a late success would leave the file locked.
        """
        with _adding_path_to_errors(path):
            # Try once even if the deadline has passed, because a timeout may be 0. But after a
            # signal, do not even take a lock that is free.
            if self._signals.received is None and try_lock(descriptor, operation):
                return
            if self._is_too_late(deadline):
                raise _TooLate
            self._log_holders(logging.DEBUG)
            with Waiter(descriptor, operation) as waiter:
                self._wait_for(waiter, deadline)
            # The deadline and the signal are not looked at again. If the waiter has got the lock in
            # the last moment, use it.
            if not waiter.has_lock():
                raise _TooLate

    def _wait_for(self, waiter: Waiter, deadline: float) -> None:
        """Wait until the waiter is done, the deadline has passed, or a signal has come.

        The caller has to ask the waiter which of these it was. If the wait takes long, log once who
        holds the lock.
        """
        notice_at = time.monotonic() + _NOTICE_SECONDS
        while not waiter.is_done and not self._signals.is_over():
            now = time.monotonic()
            if now >= deadline:
                return
            if now >= notice_at:
                self._log_holders(logging.INFO)
                # One notice is enough.
                notice_at = math.inf
            # `now` is before both moments, so this is not negative. With another look at the clock
            # it could be, and poll() would then wait without a limit.
            seconds = min(deadline, notice_at) - now
            self._signals.wait(seconds, [waiter.done_descriptor])

    def _is_too_late(self, deadline: float) -> bool:
        """Return whether to stop waiting: the deadline has passed, or the process has to stop."""
        return time.monotonic() >= deadline or self._signals.is_over()

    def _refusal(
        self,
        *,
        waited_seconds: float,
        timeout_seconds: float,
        is_out_of_time: bool,
    ) -> SafetyError:
        """Return the error that says why the lock was not taken.

        `timeout_seconds` is how long the caller wanted to wait. `is_out_of_time` means that the
        deadline of the whole process was earlier, so the wait was shorter.
        """
        if self._signals.received is not None:
            return Interrupted(self._signals.received)
        owners = find_owners(self._path)
        lock_timeout = LockTimeout(self._name, owners, waited_seconds, timeout_seconds)
        if is_out_of_time:
            # This error also says what the process was waiting for.
            return DeadlineExceeded(self._signals.timeout_seconds, waiting_for=lock_timeout)
        return lock_timeout

    def _log_holders(self, level: int) -> None:
        """Log who holds the lock."""
        # Finding out who holds it takes milliseconds, so do it only if the message is shown.
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


def _replace_with_empty_file(path: Path) -> None:
    """Replace a lock file with a new one. The caller has locked the old file."""
    # Remove the temporary file of a process that was killed while it replaced the file.
    sweep(path)
    # NotFlushed means: if the power fails now, the old file may come back. Then the next process
    # that uses the lock replaces it again.
    with suppress(NotFlushed):
        replace(path, b"")


class _TooLate(Exception):
    """The deadline passed, or a signal came, before the lock was free."""


@contextmanager
def _adding_path_to_errors(path: Path) -> Iterator[None]:
    """Raise an OSError of the block again with the path. flock() knows only the descriptor.

    If it means that the file system has no locks, raise LocksUnsupported instead.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_LOCKS_ERRORS:
            raise LocksUnsupported(str(path), os.strerror(error.errno).lower()) from error
        raise OSError(error.errno, error.strerror, str(path)) from error


def _has_several_names(path: Path) -> bool:
    """Return whether the file has hard links: other names. Return False if there is no file."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    # A directory also has several names. It is not replaced, and opening it raises an error.
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _is_current(path: Path, descriptor: int) -> bool:
    """Return whether the path is still a name of the open file, and its only name.

    While this process waited for the file, another one may have replaced it at the path, or may
    have given it a second name. Raise UnsafePath if it is not a lock file of this user.
    """
    status = os.fstat(descriptor)
    refuse_unsafe_lock_file(path, status)
    return status.st_nlink <= 1 and _is_name_of(path, status)


def refuse_unsafe_lock_file(path: Path, status: os.stat_result) -> None:
    """Raise UnsafePath if the file cannot be a lock file, or if other users can change it."""
    if not stat.S_ISREG(status.st_mode):
        raise UnsafePath(str(path), "a lock file has to be a regular file")
    if status.st_uid != os.geteuid() or status.st_mode & _WRITABLE_BY_OTHERS:
        reason = "the lock file belongs to another user, or others may write to it"
        raise UnsafePath(str(path), reason)


def _is_name_of(path: Path, status: os.stat_result) -> bool:
    """Return whether the file with this status is at the path, and not another one or none."""
    try:
        return os.path.samestat(path.lstat(), status)
    except FileNotFoundError:
        return False


def _milliseconds_since(started_at: float) -> int:
    """Return the time since this value of `time.monotonic()`, in whole milliseconds."""
    return round((time.monotonic() - started_at) * 1000)
