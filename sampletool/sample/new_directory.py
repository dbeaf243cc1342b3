"""Check the directory in which a workspace is going to be created."""

import errno
import os
from pathlib import Path

from ..kit.contract.library_errors import from_library_error
from ..kit.places import home_directory
from ..kit.program import PROGRAM
from ..kit.safety.errors import UnsafePath


def refuse_wide_directory(directory: Path) -> None:
    """Raise ToolError if the directory is the root directory or the home directory itself.

    A workspace there would contain every directory below it: `config set` anywhere in the home
    directory would change its settings instead of those of the user.
    """
    reason = _why_too_wide(directory)
    if reason is not None:
        error = from_library_error(UnsafePath(str(directory), reason))
        raise error.with_hint(
            f"Choose a new directory, for example `{PROGRAM} init demo`. "
            "To use this directory anyway, add --force."
        )


def _why_too_wide(directory: Path) -> str | None:
    real_path = Path(os.path.realpath(directory))
    if real_path == real_path.parent:
        return "it is the root directory, so every directory would be in this workspace"
    home = home_directory()
    if home is not None and real_path == Path(os.path.realpath(home)):
        return "it is your home directory, so every directory in it would be in this workspace"
    return None


def check_writable(directory: Path) -> None:
    """Raise OSError if nothing can be created in this directory, or it cannot be created itself.

    A dry run must not try it. So this asks the system about the nearest directory that exists. As
    root, everything seems to be possible in /proc and /sys.
    """
    existing = _nearest_existing(directory)
    if os.statvfs(existing).f_flag & os.ST_RDONLY:
        raise _os_error(errno.EROFS, directory)
    if not os.access(existing, os.W_OK | os.X_OK):
        raise _os_error(errno.EACCES, existing)
    longest_name = os.pathconf(existing, "PC_NAME_MAX")
    for name in directory.relative_to(existing).parts:
        if len(os.fsencode(name)) > longest_name:
            raise _os_error(errno.ENAMETOOLONG, directory)


def _nearest_existing(directory: Path) -> Path:
    """Return the directory itself, or else the nearest one above it that exists.

    Raise OSError if the directory can never exist, for example because it is below a file.
    """
    while True:
        try:
            # Not exists(): it would not raise the errors that this function should raise.
            directory.stat()
        except FileNotFoundError:
            directory = directory.parent
        else:
            return directory


def _os_error(number: int, path: Path) -> OSError:
    """Return the error that the system would raise."""
    return OSError(number, os.strerror(number), str(path))
