"""A thread in which no lock can be taken.

The caller of a function in such a thread may stop waiting for the function, which then continues
until the process exits. A lock that the function holds would stay held for as long, and the
caller would not know. `Lock` asks `is_lockless` and refuses.
"""

import threading


class LocklessThread(threading.Thread):
    """A thread in which `Lock` raises RuntimeError."""


def is_lockless() -> bool:
    """Return whether the current thread must not take a lock."""
    return isinstance(threading.current_thread(), LocklessThread)
