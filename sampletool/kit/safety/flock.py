"""Take the kernel's lock on an open file (flock): try once, or wait in the kernel's queue.

A lock belongs to an open file. Duplicates of its descriptor, and the descriptors that a child
inherits, all share the one lock. The kernel releases the lock when one of them is unlocked, or
when the last of them is closed, whatever happens to their processes.

A wait must end on a signal or at a deadline, but a call of flock() that blocks cannot be told to
give up: after a signal, Python calls it again. So a thread blocks in flock() (see Waiter), and its
caller waits for the thread, for signals and for the deadline at the same time. Waiting in the
kernel's queue takes no processor time, and nobody who asks later goes first: both are problems of
polling.

filelock takes the exclusive lock and releases it. It cannot take a shared lock on a descriptor, and
it waits by polling. So these two call flock() here. It is the same lock in the kernel, so it also
excludes the `FileLock` of any other program.
"""

import errno
import fcntl
import os
import threading

from filelock import lock_descriptor, unlock_descriptor

EXCLUSIVE = fcntl.LOCK_EX
SHARED = fcntl.LOCK_SH
unlock = unlock_descriptor


def try_lock(descriptor: int, operation: int) -> bool:
    """Take the lock without waiting. Return False if another process holds it.

    `operation` is EXCLUSIVE or SHARED. Raise OSError if the file system has no locks.
    """
    if operation == EXCLUSIVE:
        return lock_descriptor(descriptor, blocking=False)
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Waiter:
    """A thread that waits for a lock in the kernel's queue.

        with Waiter(descriptor, EXCLUSIVE) as waiter:
            ...                         # wait until waiter.end_descriptor is readable, or give up
            is_locked = waiter.has_won()

    `end_descriptor` is the reading end of a pipe. It becomes readable when the thread stops
    waiting, so the caller can pass it to poll() or select() along with other descriptors.

    The thread locks a duplicate of the descriptor, so its caller gets the lock as well. A caller
    that gives up has to close its own descriptor. The thread cannot be stopped, but when it gets
    the lock later, it closes the duplicate. That is the last descriptor then, so this releases
    the lock at once.
    """

    def __init__(self, descriptor: int, operation: int) -> None:
        """Start the thread. Raise OSError if there are too many open descriptors."""
        self.has_ended = False
        """Whether the thread has stopped waiting, with the lock or with an error."""
        self._error: OSError | None = None
        self._duplicate = os.dup(descriptor)
        # Nothing is written to this pipe. A pipe is readable when its other end is closed.
        try:
            self.end_descriptor, self._end_writer = os.pipe()
        except OSError:
            os.close(self._duplicate)
            raise

        thread = threading.Thread(
            target=self._wait,
            args=(operation,),
            daemon=True,  # a process that has given up must be able to exit
        )
        try:
            thread.start()
        except RuntimeError as error:
            # There are too many threads. has_won() raises this error.
            self._error = OSError(errno.EAGAIN, str(error))
            self._finish()

    def __enter__(self) -> "Waiter":
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.end_descriptor)

    def has_won(self) -> bool:
        """Return whether the lock has been taken. Raise OSError if waiting for it failed."""
        if self._error is not None:
            raise self._error
        # Without an error, the thread stops waiting only when it has the lock.
        return self.has_ended

    def _wait(self, operation: int) -> None:
        try:
            fcntl.flock(self._duplicate, operation)
        except OSError as error:
            self._error = error
        self._finish()

    def _finish(self) -> None:
        # A caller that is woken by the pipe looks at has_ended.
        self.has_ended = True
        # The lock is released here if the caller has given up. Otherwise it stays with the
        # caller's own descriptor.
        os.close(self._duplicate)
        os.close(self._end_writer)
