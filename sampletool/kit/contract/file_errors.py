"""What files, directories and disks can do to a call, each as an expected failure."""

import errno
import os
from typing import Any

from .errors import ExitStatus, InternalError, Interrupted, InvalidValues, TimedOut, ToolError, UsageMistakes


class PathError(ToolError):
    """A failure that is about one path.

    Where the path is not known, words stand for it in the sentence, and the context has none.
    """

    def __init__(self, path: str, reason: str | None = None, suggestion: str = "", **facts: Any) -> None:
        is_known = os.path.isabs(path)
        directory = os.path.dirname(path) if is_known else "its directory"
        super().__init__("", suggestion, path=path, reason=reason, directory=directory, **facts)
        for name in ("directory",) if is_known else ("directory", "path"):
            del self.context[name]


class InvalidToml(PathError):
    """A file that has to be TOML is not, or cannot be changed safely."""

    code, exit_status = "INVALID_TOML", ExitStatus.USAGE
    sentence = "{path} cannot be used as TOML: {reason}."
    advice = "Correct the file by hand; it was not changed."


class UnsafePath(PathError):
    """A path that leads where we will not go: a link, a device, a directory in a file's place."""

    code, exit_status = "UNSAFE_PATH", ExitStatus.USAGE
    sentence = "{path} cannot be used: {reason}."
    advice = "Name another path, or put there what is needed."


class LocksUnsupported(PathError):
    """The file system has no locks that hold."""

    code, exit_status = "LOCKS_UNSUPPORTED", ExitStatus.PRECONDITION
    sentence = "{path} cannot be locked: {reason}."
    advice = "Put it on a local file system; `{PROGRAM} doctor` tells what this machine supports."


class FileNotFound(PathError):
    """A file or directory that is needed does not exist."""

    code, exit_status = "FILE_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = "{path} does not exist."
    advice = "Check the path; it is looked up from the current directory, or --cwd."


class PermissionDenied(PathError):
    """The operating system does not allow it."""

    code, exit_status = "PERMISSION_DENIED", ExitStatus.PERMISSION
    sentence = "{path} cannot be read, created or changed: {reason}."
    advice = "Check the owner and the mode of it, and of {directory}."


class UnsafeDirectory(PathError):
    """Other users can write to a directory that must be private."""

    code, exit_status = "UNSAFE_DIRECTORY", ExitStatus.PERMISSION
    sentence = "{path} is not safe to use: {reason}."
    advice = "Correct its owner and mode, or choose another directory."


class ReadOnly(PathError):
    """The file system is read-only."""

    code, exit_status = "READ_ONLY", ExitStatus.PERMISSION
    sentence = "{path} cannot be changed: its file system is read-only."
    advice = "Use a writable directory."


class NoSpace(PathError):
    """The disk or the quota is full."""

    code, exit_status = "NO_SPACE", ExitStatus.INTERNAL
    sentence = "There is no space left to write {path}."
    advice = "Free some space and run it again; what was there is untouched."


class NotFlushed(PathError):
    """A file is changed, but the flush of its directory failed: a power cut may undo the change."""

    code, exit_status = "NOT_FLUSHED", ExitStatus.INTERNAL
    sentence = "{path} is changed, but the change may not survive a power cut: {reason}."
    advice = "Check the disk; the change need not be made again."


class IoFailure(PathError):
    """The operating system could not read or write."""

    code, exit_status = "IO_ERROR", ExitStatus.INTERNAL
    sentence = "{path} could not be read or written: {reason}."
    advice = "Check the disk and the path."


class OutputExists(PathError):
    """Something is where a result belongs, and it is not this result."""

    code, exit_status = "OUTPUT_EXISTS", ExitStatus.CONFLICT
    sentence = "{path} is already there: {found}. It was not changed."
    advice = "Pass --overwrite to replace it, or a new --session-id or another --output to keep both."


_KINDS: dict[int | None, type[PathError]] = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), NoSpace),
    **dict.fromkeys((errno.EACCES, errno.EPERM), PermissionDenied),
    **dict.fromkeys((errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.ENXIO, errno.ENAMETOOLONG), UnsafePath),
    errno.EROFS: ReadOnly,
    errno.ENOENT: FileNotFound,
}

_ADVICE = {errno.EMFILE: "Name fewer files in one call, or let it open more at once (ulimit -n)."}

ANY_CALL = (UsageMistakes, InvalidValues, InvalidToml, FileNotFound, PermissionDenied, UnsafePath, UnsafeDirectory,
            ReadOnly, NoSpace, NotFlushed, IoFailure, TimedOut, Interrupted, InternalError)  # fmt: skip
"""The errors that any call can end with: a mistake, what files and disks do, --timeout, a signal, a bug in the tool."""


def from_os_error(error: OSError, path: str | None = None) -> ToolError:
    """The error of this package that an OSError stands for."""
    where = path or (os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "the file")
    reason = (error.strerror or str(error)).lower()
    return _KINDS.get(error.errno, IoFailure)(where, reason, _ADVICE.get(error.errno or 0, ""))
