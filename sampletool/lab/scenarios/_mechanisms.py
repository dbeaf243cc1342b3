"""Removals of the production lock, a mechanism of several scenarios."""

from ..scenario import Removal


def without_lock(breaks: str) -> Removal:
    """Return the removal that lets a process continue without the lock."""
    return Removal(
        "kit/safety/lock.py:Lock._lock_file",
        summary="continue without the lock",
        pattern="self._signals.received is None and try_lock(descriptor, operation)",
        instead="try_lock(descriptor, operation) or True",
        breaks=breaks,
    )


def with_shared_lock(breaks: str) -> Removal:
    """Return the removal that lets several processes hold the lock."""
    return Removal(
        "kit/safety/lock.py:Lock.exclusively",
        summary="take a lock that several processes may hold",
        pattern="self._acquire(EXCLUSIVE, timeout_seconds)",
        instead="self._acquire(SHARED, timeout_seconds)",
        breaks=breaks,
    )
