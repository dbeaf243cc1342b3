"""The kernel's lock on an open file: try to take it, or wait for it in the kernel's queue.

Waiting costs nothing and ends when the caller likes: a thread blocks in flock, and the caller watches `Waiter.ended`
beside whatever else may end its wait (Python restarts a blocking call after a signal, so it could not block itself).

filelock takes the exclusive lock and releases it. It has no shared one for a descriptor, and it waits by polling: both
are flock here, on the same file, so that they exclude each other and any program's `FileLock`.
"""

import _thread
import errno
import fcntl
import os

from filelock import lock_descriptor, unlock_descriptor

EXCLUSIVE, SHARED = fcntl.LOCK_EX, fcntl.LOCK_SH
unlock = unlock_descriptor


def try_lock(descriptor: int, operation: int) -> bool:
    """Take the lock, or say at once that another process has it."""
    if operation == EXCLUSIVE:
        return lock_descriptor(descriptor, blocking=False)
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Waiter:
    """A thread that blocks in flock on a duplicate of a descriptor: both share one lock.

    If the caller has given up and closed its own, the duplicate is the last one: what it wins is released at once.
    """

    def __init__(self, descriptor: int, operation: int) -> None:
        self.ended, self._end = os.pipe()
        """Readable as soon as the thread has ended."""
        self.has_ended = False
        self._error: OSError | None = None
        self._duplicate = os.dup(descriptor)
        try:
            _thread.start_new_thread(self._block, (operation,))
        except RuntimeError as error:
            self._error = OSError(errno.EAGAIN, str(error))
            self._finish()

    def __enter__(self) -> "Waiter":
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.ended)

    def has_won(self) -> bool:
        if self._error is not None:
            raise self._error
        return self.has_ended

    def _block(self, operation: int) -> None:
        try:
            fcntl.flock(self._duplicate, operation)
        except OSError as error:
            self._error = error
        self._finish()

    def _finish(self) -> None:
        self.has_ended = True
        os.close(self._duplicate)
        os.close(self._end)
