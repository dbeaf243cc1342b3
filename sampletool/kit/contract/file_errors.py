"""What files, directories and disks can do to a call, each as an expected failure."""

import errno
import os
from typing import Any

from ..safety.errors import SafetyError, UnsafePath
from .errors import ExitStatus, ToolError
from .library_errors import to_tool_error


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


class EditRefused(PathError):
    """A file of settings in which a key cannot be changed safely."""

    code, exit_status = "INVALID_TOML", ExitStatus.USAGE
    sentence = "Cannot change {key} in {path}: {reason}. Nothing was changed."
    advice = "Change the file in a text editor."


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
    errno.EROFS: ReadOnly,
    errno.ENOENT: FileNotFound,
}

_WRONG_KIND_OF_PATH = {errno.ELOOP, errno.EISDIR, errno.ENOTDIR, errno.ENXIO, errno.ENAMETOOLONG}

_ADVICE = {errno.EMFILE: "Name fewer files in one call, or let it open more at once (ulimit -n)."}

EXPECTED = (ToolError, SafetyError, OSError)
"""The exceptions that the tool reports by a code. Any other exception is a bug of the tool."""


def from_os_error(error: OSError, path: str | None = None) -> ToolError:
    """The error of this package that an OSError stands for."""
    where = path or (os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "the file")
    reason = (error.strerror or str(error)).lower()
    if error.errno in _WRONG_KIND_OF_PATH:
        return to_tool_error(UnsafePath(where, reason))
    return _KINDS.get(error.errno, IoFailure)(where, reason, _ADVICE.get(error.errno or 0, ""))


def reported(error: ToolError | SafetyError | OSError) -> ToolError:
    """Return the error that the tool reports for one of the EXPECTED exceptions."""
    if isinstance(error, ToolError):
        return error
    if isinstance(error, SafetyError):
        return to_tool_error(error)
    return from_os_error(error)
