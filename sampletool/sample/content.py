"""What a file contains, as a SHA-256 that is not computed again while the file has not changed.

A file counts as unchanged while size, times and inode are what they were, unless it was changed within two seconds
before it was looked at (two changes may share a time stamp) or the machine has been started since (a power cut may
have left an old content under new times).
"""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

Look = list[str | int]
"""SHA-256 and whether it can be executed, size, mtime, ctime, inode: as it was when last looked at."""

RACY_NANOSECONDS = 2_000_000_000
_BLOCK_BYTES = 1024 * 1024


def look_at(path: str | Path, before: Look | None = None, check: Callable[[], None] = lambda: None) -> Look:
    """The file as it is now. `before` saves reading it if it can be trusted; `check` is called meanwhile."""
    found = os.stat(path)
    stamp: Look = [found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
    if before is not None and before[1:] == stamp:
        return before
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while block := file.read(_BLOCK_BYTES):
            check()
            digest.update(block)
    if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < RACY_NANOSECONDS:
        stamp[1] = 0
    return [digest.hexdigest() + ("x" if found.st_mode & 0o111 else ""), *stamp]


CHANGED: Look = ["changed while it was read", 0, 0, 0, 0]
"""Like no look at any file, for what changed while it was read: nobody knows what was seen."""


def has_changed(path: str | Path, since: Look) -> bool:
    """Whether anybody has touched it, also if it is now as it was: a reader may have seen what was there between."""
    try:
        found = os.stat(path)
    except OSError:
        return True
    return [found.st_size, found.st_ctime_ns, found.st_ino] != [since[1], since[3], since[4]]


def boot_id() -> str:
    """Changes when the machine is started; where it cannot be told, it changes with every call."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(time.time_ns())
