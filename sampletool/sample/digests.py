"""Compute the digests of files, and remember them, so that unchanged files are not read again.

A file counts as unchanged if its size, its times and its inode are those of the moment when it was
read. There are two cases in which a file can change without changing them:

* The clock of a file system has ticks. Two changes in one tick have the same time. So the digest of
  a file is remembered only if the file had not changed for two seconds when it was read.
* A reboot can bring back an older content with newer times, and clocks may be wrong after it. So
  what was remembered before a reboot is forgotten.
"""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from ..kit.contract.expected import EXPECTED
from ..kit.safety.atomic_file import read_regular, replace

_BLOCK_BYTES = 1024 * 1024
_MAX_CACHE_BYTES = 256 * 1024 * 1024
_MIN_UNCHANGED_SECONDS = 2.0
"""How long a file must be unchanged before its digest is remembered: longer than any clock tick."""

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

NOT_READ = "not read"
"""What a file has in place of a digest if it must not be read. It differs from every digest."""

Stamp = list[int]
"""The size of a file, its times and its inode. A list, because JSON has no tuples."""


def compute_digest(path: str | Path, check: Callable[[], None]) -> str:
    """Return the digest of the content, with a mark if the file is executable.

    Return "" if the file cannot be read. `check` is called while it is read, and may raise.
    """
    # This import takes 3 ms. If no file has changed, a command does not need it.
    import hashlib

    content_hash = hashlib.sha256()
    try:
        with open(path, "rb", buffering=0) as file:
            while block := file.read(_BLOCK_BYTES):
                check()
                content_hash.update(block)
            mode = os.fstat(file.fileno()).st_mode
    except OSError:
        return ""
    is_executable = mode & 0o111 != 0
    if is_executable:
        return f"{content_hash.hexdigest()}x"
    return content_hash.hexdigest()


class DigestCache:
    """The digests of the files of a workspace, kept in one file."""

    def __init__(
        self,
        path: Path,
        check: Callable[[], None],
        clock: Callable[[], float] = time.time,
        boot_id: str | None = None,
        *,
        reads_files: bool = True,
    ) -> None:
        """Read the cache file. If it cannot be used, begin without digests.

        `check` is called while a file is read, and may raise. `boot_id` is a text that changes with
        each reboot. By default, it is that of the system.

        With `reads_files=False`, no file is read, and only remembered digests are known.
        """
        self._path = path
        self._check = check
        self._reads_files = reads_files
        self._clock = clock
        self._boot_id = _read_boot_id() if boot_id is None else boot_id
        self._remembered = _read_cache(path, self._boot_id)
        """The digest of each file, and the stamp that the file had when it was read."""
        self._has_changed = False

    def digest(self, path: str | Path) -> str:
        """Return the digest of a file, from memory if the file is unchanged.

        Return "" if the file cannot be read, and NOT_READ if it must not be read.
        """
        name = str(path)
        stamp = _read_stamp(name)
        if name in self._remembered:
            remembered_digest, remembered_stamp = self._remembered[name]
            if stamp == remembered_stamp:
                return remembered_digest
        if not self._reads_files:
            return NOT_READ
        started_at = self._clock()
        new_digest = compute_digest(name, self._check)
        # The stamp was read before the content. So if the file has changed while it was read, the
        # stamp that is remembered here is already out of date, and the digest is never used.
        if stamp is not None and _is_safe_to_remember(stamp, started_at):
            self._remembered[name] = (new_digest, stamp)
            self._has_changed = True
        return new_digest

    def save(self) -> None:
        """Write the digests to the cache file. A failure costs only time, so it is ignored."""
        if not self._has_changed or self._boot_id == "":
            return
        files = {}
        for name, entry in self._remembered.items():
            # Files that were deleted are forgotten. Otherwise, the cache would always grow.
            if os.path.lexists(name):
                files[name] = entry
        content = json.dumps({"boot_id": self._boot_id, "files": files})
        with suppress(*EXPECTED):
            replace(self._path, content.encode())
            self._has_changed = False


def _read_cache(path: Path, boot_id: str) -> dict[str, tuple[str, Stamp]]:
    """Return the digests and stamps in the cache file. Return none if they cannot be trusted."""
    remembered: dict[str, tuple[str, Stamp]] = {}
    # Only this tool should write to the file, but it can have any content.
    with suppress(*EXPECTED, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        content = json.loads(read_regular(path, _MAX_CACHE_BYTES, follow=False))
        is_from_this_boot = content["boot_id"] == boot_id and boot_id != ""
        if is_from_this_boot:
            for name, (file_digest, stamp) in content["files"].items():
                remembered[name] = (str(file_digest), list(stamp))
    return remembered


def _read_boot_id() -> str:
    """Return a text that is another one after each reboot, or "" if the system has none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def _read_stamp(path: str) -> Stamp | None:
    """Return the stamp of a file, or None if there is no file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _is_safe_to_remember(stamp: Stamp, now: float) -> bool:
    """Return whether the last change of a file is so old that a new change would have a new time.

    After a change in the last tick of the clock, another change could leave the same stamp.
    """
    _size, modified_ns, changed_ns, _inode = stamp
    last_change_seconds = max(modified_ns, changed_ns) / 1e9
    return now - last_change_seconds > _MIN_UNCHANGED_SECONDS
