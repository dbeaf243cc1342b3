"""What can go wrong with files, directories and disks, as expected failures.

`from_os_error` chooses the class for an OSError by its `errno`.
"""

import errno
import os
from typing import Any

from ..safety.errors import UnsafePath
from .errors import ExitStatus, ToolError, fill_template
from .library_errors import from_library_error


class PathError(ToolError):
    """A failure that concerns one path.

    `{path}` and `{directory}`, the directory of the path, are replaced in the message and the hint.
    """

    def __init__(
        self,
        path: str,
        reason: str | None = None,
        suggestion: str = "",
        **facts: Any,
    ) -> None:
        """Fill the templates of the class: `sentence` for the message, and `advice` for the hint.

        A `suggestion` replaces the hint. The `facts` are for the templates, and for `context` in
        the response. If `path` is not absolute, it is a description such as "the file". Then the
        message has the description, and `context` has no path.
        """
        if os.path.isabs(path):
            directory = os.path.dirname(path)
            facts = {"path": path, "reason": reason, **facts}
        else:
            directory = "its directory"
            facts = {"reason": reason, **facts}
        template_values = {**facts, "path": path, "directory": directory}
        message = fill_template(self.sentence, template_values)
        if not suggestion:
            suggestion = fill_template(self.advice, template_values)
        super().__init__(message, suggestion, **facts)


class EditRefused(PathError):
    """A key in a settings file cannot be changed without touching other parts of the file."""

    code, exit_status = "INVALID_TOML", ExitStatus.USAGE
    sentence = "Cannot change {key} in {path}: {reason}. Nothing was changed."
    advice = "Edit the file in a text editor instead."


class FileNotFound(PathError):
    """A file or directory that the command needs does not exist."""

    code, exit_status = "FILE_NOT_FOUND", ExitStatus.NOT_FOUND
    sentence = "{path} does not exist."
    advice = "Check the path. Relative paths start in the current directory, or in --cwd DIR."


class PermissionDenied(PathError):
    """The operating system denies access to a file or directory."""

    code, exit_status = "PERMISSION_DENIED", ExitStatus.PERMISSION
    sentence = "Cannot access {path}: {reason}."
    advice = "Check the owner and the permissions of {path} and {directory}."


class ReadOnly(PathError):
    """The file system is read-only."""

    code, exit_status = "READ_ONLY", ExitStatus.PERMISSION
    sentence = "Cannot change {path}: the file system is read-only."
    advice = "Use a directory that you can write to."


class NoSpace(PathError):
    """The disk is full, or your quota is used up."""

    code, exit_status = "NO_SPACE", ExitStatus.INTERNAL
    sentence = "Cannot write {path}: the disk is full, or your quota is used up."
    advice = (
        "Free up some space, then run the command again. "
        "If {path} already existed, it still has its old content."
    )  # fmt: skip


class IoFailure(PathError):
    """The operating system could not read or write a file."""

    code, exit_status = "IO_ERROR", ExitStatus.INTERNAL
    sentence = "Cannot read or write {path}: {reason}."
    advice = "Check the path, and check the disk for errors."


class OutputExists(PathError):
    """There is already something else at the path where the result belongs."""

    code, exit_status = "OUTPUT_EXISTS", ExitStatus.CONFLICT
    sentence = "{path} already exists: {found}. Nothing was changed."
    advice = "To keep both, pass another --output or --session-id. To replace it, first delete it."


_ERRORS_BY_NUMBER: dict[int, type[PathError]] = {
    errno.ENOSPC: NoSpace,
    errno.EDQUOT: NoSpace,
    errno.EACCES: PermissionDenied,
    errno.EPERM: PermissionDenied,
    errno.EROFS: ReadOnly,
    errno.ENOENT: FileNotFound,
}
"""The class for each `errno`. All others are an IoFailure, except for those of a wrong path."""

_WRONG_KIND_OF_PATH = {
    errno.ELOOP,
    errno.EISDIR,
    errno.ENOTDIR,
    errno.ENXIO,
    errno.ENAMETOOLONG,
}
"""The numbers that mean UNSAFE_PATH: there is something else than a file at the path."""

_HINT_FOR_TOO_MANY_FILES = (
    "Raise the limit on open files, "
    "for example with `ulimit -n 1024`."
)  # fmt: skip
_HINT_FOR_TOO_LARGE_A_FILE = (
    "If your shell limits the size of files, "
    "raise the limit, for example with `ulimit -f unlimited`."
)  # fmt: skip

_HINTS_BY_NUMBER = {
    errno.EMFILE: _HINT_FOR_TOO_MANY_FILES,
    errno.EFBIG: _HINT_FOR_TOO_LARGE_A_FILE,
    errno.EBUSY: "If the path is a mount point, mount its parent directory instead.",
}
"""Hints that replace the one of the class."""


def from_os_error(error: OSError, path: str | None = None) -> ToolError:
    """Return the error that the tool reports for an OSError.

    `path` is the path that the error concerns. By default, it is the path in the error.
    """
    if path is None:
        path = _path_in(error)
    # The system's own text, such as "Permission denied". It is in the middle of a sentence.
    reason = (error.strerror or str(error)).lower()
    number = error.errno
    if number in _WRONG_KIND_OF_PATH:
        # kit/safety raises UnsafePath when it finds such a path itself. Report both alike.
        return from_library_error(UnsafePath(path, reason))
    if number is None:
        return IoFailure(path, reason)
    error_class = _ERRORS_BY_NUMBER.get(number, IoFailure)
    return error_class(path, reason, _HINTS_BY_NUMBER.get(number, ""))


def _path_in(error: OSError) -> str:
    """Return the path in an OSError, or "the file" if it has none."""
    # An error about a descriptor has its number, an integer, as the file name.
    if isinstance(error.filename, (str, bytes)):
        return os.fsdecode(error.filename)
    return "the file"
