"""Find out facts about the open files of this process, on Linux.

The tracee describes events with these functions. They use the original functions of `os`, because
a call of the tracee itself must not be an event.
"""

import fcntl
import os
from contextlib import suppress
from typing import Any

_original_readlink = os.readlink
_original_lseek = os.lseek
_original_fstat = os.fstat

_DELETED_SUFFIX = " (deleted)"
"""The text that Linux appends to the path of an open file whose name was deleted."""


def path_of(argument: Any) -> str:
    """Return the absolute path for an argument of a call: a path, a descriptor or a file.

    Return "" for None.
    """
    if argument is None:
        return ""
    if isinstance(argument, int):
        return _path_of_descriptor(argument)
    if hasattr(argument, "fileno"):
        return _path_of_descriptor(argument.fileno())
    return os.path.abspath(os.fsdecode(argument))


def _path_of_descriptor(descriptor: int) -> str:
    """Return the path that an open file has now, or had when its name was deleted."""
    try:
        path = _original_readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return f"descriptor {descriptor}"
    # With the suffix, a worker that closes a deleted file would never seem to release the lock
    # that it took when the file had its name.
    return path.removesuffix(_DELETED_SUFFIX)


def is_at_end(descriptor: int) -> bool:
    """Return whether the next read finds the end of the file. Return False for a pipe."""
    try:
        position = _original_lseek(descriptor, 0, os.SEEK_CUR)
    except OSError:
        # The descriptor is a pipe or a terminal, which has no position.
        return False
    return position >= _original_fstat(descriptor).st_size


def has_lock(descriptor: int) -> bool:
    """Return whether flock() has locked this open file. Return False if it is closed."""
    with suppress(FileNotFoundError), open(f"/proc/self/fdinfo/{descriptor}") as status:
        return "FLOCK" in status.read()
    return False


def is_lock_free(descriptor: int, operation: int = fcntl.LOCK_EX) -> bool:
    """Return whether flock() would get the lock of this open file at once. Do not take it.

    `operation` is LOCK_EX or LOCK_SH.
    """
    if has_lock(descriptor):
        return True
    # Open the file again: a lock on the new descriptor does not change the lock of the first one.
    other_descriptor = os.open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_NONBLOCK)
    try:
        fcntl.flock(other_descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(other_descriptor)
    return True


def has_locked_duplicate(descriptor: int) -> bool:
    """Return whether another descriptor of this process keeps the lock of this open file.

    The kernel releases a lock only when all duplicates of the descriptor are closed.
    """
    path = path_of(descriptor)
    # Linux lists the descriptors of this process in this directory.
    for name in os.listdir("/proc/self/fd"):
        other_descriptor = int(name)
        if other_descriptor == descriptor:
            continue
        if path_of(other_descriptor) == path and has_lock(other_descriptor):
            return True
    return False
