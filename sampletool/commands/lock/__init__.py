"""Who holds which lock, and what to do about a holder that has died."""

from pathlib import Path


def name_of(lock_file: Path) -> str:
    """What people call it."""
    return lock_file.name.removesuffix(".lock").lstrip(".")
