"""Create the production lock of the tool, for the fixed variants of the scenarios."""

from pathlib import Path

from ..kit.safety.lock import Lock
from ..kit.safety.lock_record import describe_me
from ..kit.safety.signals import Signals

PATIENT_WAIT_SECONDS = 60.0
"""The time limit for a lock. It is long, because the lab decides when a worker gets the lock."""


def lock_named(name: str, signals: Signals | None = None, path: Path | None = None) -> Lock:
    """Return the lock with this name. Without a path, its file is in the scratch directory."""
    return Lock(path or Path(name), name, describe_me("lab", "lab"), signals)
