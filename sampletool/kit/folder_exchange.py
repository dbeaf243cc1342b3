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
"""The errors of a kernel or a file system that does not know the flag."""


class ExchangeUnsupported(Exception):
    """The system, or the file system of the folders, cannot exchange two names."""


def exchange(first: str, second: str) -> None:
    """Give each of two existing paths on one file system the content of the other.

    Raise ExchangeUnsupported if this is not possible here, and OSError if it fails.
    """
    rename, exchange_flag = _find_rename_function()
    # ctypes.get_errno() returns what the C function stores. This removes an older error.
    ctypes.set_errno(0)
    if sys.platform == "darwin":
        result = rename(os.fsencode(first), os.fsencode(second), exchange_flag)
    else:
        result = rename(
            _AT_FDCWD,
            os.fsencode(first),
            _AT_FDCWD,
            os.fsencode(second),
            exchange_flag,
        )
    if result == 0:
        return
    error_number = ctypes.get_errno()
    if error_number in _UNSUPPORTED:
        raise ExchangeUnsupported(os.strerror(error_number))
    raise OSError(error_number, os.strerror(error_number), first, None, second)


def _find_rename_function() -> tuple["ctypes._NamedFuncPointer", int]:
    """Return the C function that renames, and the flag that makes it exchange two names.

    Raise ExchangeUnsupported if the C library is too old to have the function.
    """
    if sys.platform == "darwin":
        function_name = "renamex_np"
        exchange_flag = _RENAME_SWAP
    else:
        function_name = "renameat2"
        exchange_flag = _RENAME_EXCHANGE
    c_library = ctypes.CDLL(None, use_errno=True)
    try:
        return getattr(c_library, function_name), exchange_flag
    except AttributeError:
        raise ExchangeUnsupported(f"The C library has no {function_name}.") from None
