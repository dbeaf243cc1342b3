"""Take the kernel's lock on an open file (flock): try once, or wait in the kernel's queue.

A lock belongs to an open file. Duplicates of its descriptor, and the descriptors that a child
inherits, all share the one lock. The kernel releases the lock when one of them is unlocked, or
when the last of them is closed, whatever happens to their processes.

A wait must end on a signal or at a deadline, but a call of flock() that blocks cannot be told to
give up: after a signal, Python calls it again. So a thread blocks in flock() (see Waiter), and its
caller waits for the thread, for signals and for the deadline at the same time. Waiting in the
kernel's queue takes no processor time, and a process that asks later rarely goes first. With
polling, neither is true.

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
    """Take the lock without waiting. Return False if another open file holds it.

    `operation` is EXCLUSIVE or SHARED. Raise OSError if the file system has no locks.
    """
    if operation == EXCLUSIVE:
        return lock_descriptor(descriptor, blocking=False)
    # filelock has no function that takes a shared lock on a descriptor.
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class Waiter:
    """A thread that waits for a lock in the kernel's queue.

        with Waiter(descriptor, EXCLUSIVE) as waiter:
            ...                        # wait until waiter.done_descriptor is readable, or give up
        if not waiter.has_lock():
            os.close(descriptor)

    `done_descriptor` is the reading end of a pipe. It becomes readable when the thread stops
    waiting, so the caller can pass it to poll() or select() along with other descriptors.

    The thread locks a duplicate of the caller's descriptor, and the lock belongs to both. Each
    descriptor is closed once, by one side:

    * The caller closes its own descriptor to release the lock, or to give up.
    * The thread closes the duplicate when it stops waiting. If the caller has given up, the
      duplicate is the last descriptor, so this releases the lock at once. Otherwise, the lock stays
      with the caller's descriptor.
    * The thread then closes the writing end of the pipe. This makes `done_descriptor` readable.
    * Leaving the `with` block closes `done_descriptor`.

    The thread cannot be stopped: it keeps waiting after the caller has given up.
    """

    def __init__(self, descriptor: int, operation: int) -> None:
        """Start a thread that takes the lock. `operation` is EXCLUSIVE or SHARED.

        Raise OSError if there are too many open descriptors.
        """
        self.is_done = False
        """Whether the thread has stopped waiting, with the lock or with an error."""
        self._error: OSError | None = None
        self._duplicate = os.dup(descriptor)
        # Nothing is written to this pipe. A pipe is readable when its other end is closed.
        try:
            self.done_descriptor, self._done_writer = os.pipe()
        except OSError:
            os.close(self._duplicate)
            raise

        thread = threading.Thread(
            target=self._run,
            args=(operation,),
            daemon=True,  # a process that has given up must be able to exit
        )
        try:
            thread.start()
        except RuntimeError as error:
            # There are too many threads. Behave as if the thread had failed at once: has_lock()
            # raises this error.
            self._error = OSError(errno.EAGAIN, str(error))
            self._finish()

    def __enter__(self) -> "Waiter":
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.done_descriptor)

    def has_lock(self) -> bool:
        """Return whether the thread has taken the lock. Raise OSError if waiting for it failed."""
        if self._error is not None:
            raise self._error
        # Without an error, the thread stops waiting only when it has the lock.
        return self.is_done

    def _run(self, operation: int) -> None:
        """Wait for the lock in the kernel. This is what the thread does."""
        try:
            fcntl.flock(self._duplicate, operation)
        except OSError as error:
            self._error = error
        self._finish()

    def _finish(self) -> None:
        """Tell the caller that the thread has stopped waiting, and close the thread's descriptors.

        If the caller has closed its own descriptor of the file, this also releases the lock.
        """
        # Set this first: closing the pipe wakes the caller, who then looks at it.
        self.is_done = True
        os.close(self._duplicate)
        os.close(self._done_writer)
