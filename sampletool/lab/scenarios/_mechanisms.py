"""How to take the lock away from the right ways: mechanisms that several scenarios name."""

from sampletool.lab.scenario import Removal


def without_lock(breaks: str) -> Removal:
    return Removal(
        "kit/safety/lock.py",
        says="going on without having got the lock",
        line="self._signals.received is None and try_lock(descriptor, operation):",
        instead="try_lock(descriptor, operation) or True:",
        breaks=breaks,
    )


def with_shared_lock(breaks: str) -> Removal:
    return Removal(
        "kit/safety/lock.py",
        says="a lock that several may hold",
        line="hold = self._acquire(EXCLUSIVE, timeout_seconds, recorded=recorded)",
        instead="hold = self._acquire(SHARED, timeout_seconds, recorded=recorded)",
        breaks=breaks,
    )
