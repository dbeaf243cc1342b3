"""Exchange two folders in one step, so that each name leads to one of them at every instant.

Renaming one folder away and the other one to its place needs two steps. A program that is killed
between them leaves no folder at all. Linux and macOS can exchange two names at once, but Python has
no function for it, so this module calls the one of the C library.
"""

import ctypes
import errno
import os
import sys

_RENAME_EXCHANGE = 2
"""The flag of renameat2 on Linux."""

_RENAME_SWAP = 2
"""The flag of renamex_np on macOS."""

_AT_FDCWD = -100
"""The path is relative to the working directory. This is the value on Linux."""

_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP)


class ExchangeUnsupported(Exception):
    """The system, or the file system of the folders, cannot exchange two names."""


def exchange(first: str, second: str) -> None:
    """Give each of two existing paths on one file system the content of the other.

    Raise ExchangeUnsupported if this is not possible here, and OSError if it fails.
    """
    function, flags = _find_function()
    # Without this, ctypes would discard the error number of the C library.
    ctypes.set_errno(0)
    if sys.platform == "darwin":
        result = function(os.fsencode(first), os.fsencode(second), flags)
    else:
        result = function(
            _AT_FDCWD,
            os.fsencode(first),
            _AT_FDCWD,
            os.fsencode(second),
            flags,
        )
    if result == 0:
        return
    error_number = ctypes.get_errno()
    if error_number in _UNSUPPORTED:
        raise ExchangeUnsupported(os.strerror(error_number))
    raise OSError(error_number, os.strerror(error_number), first, None, second)


def _find_function() -> tuple["ctypes._NamedFuncPointer", int]:
    """Return the function of the C library, and the flag that exchanges the names."""
    library = ctypes.CDLL(None, use_errno=True)
    name, flags = "renameat2", _RENAME_EXCHANGE
    if sys.platform == "darwin":
        name, flags = "renamex_np", _RENAME_SWAP
    try:
        return getattr(library, name), flags
    except AttributeError:
        raise ExchangeUnsupported(f"The C library has no {name}.") from None
