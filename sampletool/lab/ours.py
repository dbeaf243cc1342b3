"""The production lock, as the scenarios' right ways take it, and how to take it away from them."""

from pathlib import Path

from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.lock_record import describe_me
from sampletool.kit.safety.signals import Signals
from sampletool.lab.scenario import Removal

PATIENT_SECONDS = 60.0


def lock_named(name: str, signals: Signals | None = None, path: Path | None = None) -> Lock:
    """A lock file, of that name in the scratch directory if no path is given."""
    return Lock(path or Path(name), name, describe_me("lab", "lab"), signals)


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
        line="hold = self._acquire(EXCLUSIVE, timeout_seconds)",
        instead="hold = self._acquire(SHARED, timeout_seconds)",
        breaks=breaks,
    )
