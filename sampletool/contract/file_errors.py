"""What files, directories and disks can do to a call, each as an expected failure."""

import errno
import os

from sampletool.contract.errors import ToolError
from sampletool.contract.exit_status import ExitStatus


class InvalidToml(ToolError):
    code, exit_status = "INVALID_TOML", ExitStatus.USAGE

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} cannot be used as TOML: {reason}.", "Correct the file by hand; it was not changed.", path=path
        )


class UnsafePath(ToolError):
    """A path that leads where we will not go: a link, a device, a directory in a file's place."""

    code, exit_status = "UNSAFE_PATH", ExitStatus.USAGE

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} cannot be used: {reason}.", "Name another path, or put a regular file there.", path=path
        )


class LocksUnsupported(ToolError):
    code, exit_status = "LOCKS_UNSUPPORTED", ExitStatus.PRECONDITION

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} cannot be locked: {reason}.",
            "Put it on a local file system; `tool doctor` tells what this machine supports.",
            path=path,
        )


class FileNotFound(ToolError):
    code, exit_status = "FILE_NOT_FOUND", ExitStatus.NOT_FOUND

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} does not exist.",
            "Check the path; it is looked up from the current directory, or --cwd.",
            path=path,
        )


class OutputExists(ToolError):
    """Something is where a result belongs, and it is not this result."""

    code, exit_status = "OUTPUT_EXISTS", ExitStatus.CONFLICT

    def __init__(
        self,
        path: str,
        what: str,
        suggestion: str = "Pass --overwrite to replace it, or a new --session-id or another --output to keep both.",
    ) -> None:
        super().__init__(f"{path} is already there: {what}. It was not changed.", suggestion, path=path, found=what)


class PermissionDenied(ToolError):
    code, exit_status = "PERMISSION_DENIED", ExitStatus.PERMISSION

    def __init__(self, path: str, reason: str = "permission denied") -> None:
        super().__init__(f"{path}: {reason}.", "Check who owns it and its mode.", path=path)


class UnsafeDirectory(ToolError):
    code, exit_status = "UNSAFE_DIRECTORY", ExitStatus.PERMISSION

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is not safe to use: {reason}.",
            "Correct its owner and mode, or choose another directory.",
            path=path,
        )


class ReadOnly(ToolError):
    code, exit_status = "READ_ONLY", ExitStatus.PERMISSION

    def __init__(self, path: str) -> None:
        super().__init__(
            f"{path} cannot be changed: its file system is read-only.", "Use a writable directory.", path=path
        )


class NoSpace(ToolError):
    code, exit_status = "NO_SPACE", ExitStatus.INTERNAL

    def __init__(self, path: str) -> None:
        super().__init__(
            f"There is no space left to write {path}.",
            "Free some space and run it again; what was there is untouched.",
            path=path,
        )


class IoFailure(ToolError):
    code, exit_status = "IO_ERROR", ExitStatus.INTERNAL

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path} could not be read or written: {reason}.", "Check the disk and the path.", path=path)


def from_os_error(error: OSError, path: str | None = None) -> ToolError:
    """What the operating system said, as one of ours."""
    where = path or (os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else "the file")
    reason = error.strerror or str(error)
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return NoSpace(where)
        case errno.EROFS:
            return ReadOnly(where)
        case errno.EACCES | errno.EPERM:
            return PermissionDenied(where, reason.lower())
        case errno.ENOENT:
            return FileNotFound(where)
        case errno.ELOOP | errno.EISDIR | errno.ENOTDIR | errno.ENXIO | errno.ENAMETOOLONG:
            return UnsafePath(where, reason.lower())
        case _:
            return IoFailure(where, reason.lower())
