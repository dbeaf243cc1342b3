"""Directories that only this user can write to.

A name in a shared directory, such as /tmp, may already exist as another user's trap. So a directory
is created private, and then checked: it may have been there before.
"""

import os
import stat
from collections.abc import Set
from contextlib import suppress
from pathlib import Path

from .errors import UnsafeDirectory

PRIVATE_MODE = 0o700
_WRITABLE_BY_OTHERS = 0o022


def private_directory(path: Path) -> Path:
    """Create the directory if it is missing, and return its path.

    Missing parents are created too, with the mode that the umask leaves. The mode of a directory
    that is already there is not changed.

    Raise UnsafeDirectory if another user owns the directory or can write to it.
    """
    # If there is already something at the path, the check below finds out whether it is safe.
    with suppress(FileExistsError):
        path.mkdir(mode=PRIVATE_MODE, parents=True)
    return check_private(path)


def check_private(path: Path) -> Path:
    """Return the path unchanged if only this user can change the directory.

    Otherwise raise UnsafeDirectory, or FileNotFoundError if there is no directory.
    """
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafeDirectory(str(path), "it is a link or a file, not a directory")
    refuse_unsafe(path, status, owners={os.geteuid()})
    return path


def refuse_unsafe(path: Path, status: os.stat_result, owners: Set[int]) -> None:
    """Raise UnsafeDirectory if a user who is not one of the `owners` can change the directory."""
    if status.st_uid not in owners:
        raise UnsafeDirectory(str(path), f"it belongs to another user (uid {status.st_uid})")
    # The mode of a link means nothing: the kernel checks the directory that it leads to.
    if stat.S_ISLNK(status.st_mode):
        return
    if status.st_mode & _WRITABLE_BY_OTHERS:
        mode = stat.S_IMODE(status.st_mode)
        raise UnsafeDirectory(str(path), f"others may write to it (mode {mode:04o})")
