"""sampletool/kit/contract/file_errors.py: each error of a file has a code and names its path."""

import errno
import os

import pytest

from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.file_errors import (
    FileNotFound,
    IoFailure,
    NoSpace,
    OutputExists,
    PathError,
    PermissionDenied,
    ReadOnly,
    from_os_error,
)


def report(exception: OSError, path: str | None = None) -> ToolError:
    """Return the error that the tool reports. A mistake in a message must not end in a crash."""
    try:
        return from_os_error(exception, path)
    except Exception as problem:
        raise AssertionError(f"{exception!r} cannot be reported") from problem


def os_error(number: int, path: str | bytes | int | None = "/w/x") -> OSError:
    return OSError(number, os.strerror(number), path)


def texts(error: ToolError) -> tuple[str, str]:
    """Return the message and the hint."""
    return error.message, error.suggestion


@pytest.mark.parametrize(
    ("number", "error_class", "code", "exit_code"),
    [
        (errno.ENOSPC, NoSpace, "NO_SPACE", 1),
        (errno.EDQUOT, NoSpace, "NO_SPACE", 1),
        (errno.EROFS, ReadOnly, "READ_ONLY", 7),
        (errno.EACCES, PermissionDenied, "PERMISSION_DENIED", 7),
        (errno.EPERM, PermissionDenied, "PERMISSION_DENIED", 7),
        (errno.ENOENT, FileNotFound, "FILE_NOT_FOUND", 5),
        (errno.EIO, IoFailure, "IO_ERROR", 1),
        (errno.EMFILE, IoFailure, "IO_ERROR", 1),
    ],
    ids=lambda value: errno.errorcode.get(value) if isinstance(value, int) else None,
)
def test_each_error_of_the_operating_system_has_a_code(
    number: int, error_class: type[PathError], code: str, exit_code: int
) -> None:
    error = report(os_error(number))

    assert type(error) is error_class
    assert (error.code, error.exit_status) == (code, exit_code)
    assert "/w/x" in error.message
    assert error.context == {"path": "/w/x", "reason": os.strerror(number).lower()}


@pytest.mark.parametrize(
    "number",
    [errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG],
)
def test_a_path_to_something_else_than_a_file_is_unsafe(number: int) -> None:
    error = report(os_error(number))

    assert error.code == "UNSAFE_PATH"
    assert texts(error) == (
        f"Cannot use /w/x: {os.strerror(number).lower()}.",
        "Use another path, or move what is there out of the way.",
    )


def test_an_os_error_without_a_number_is_an_io_error_with_its_text() -> None:
    error = report(OSError("The driver failed"), "/w/x")

    assert error.code == "IO_ERROR"
    assert texts(error) == (
        "Cannot read or write /w/x: the driver failed.",
        "Check the path, and check the disk for errors.",
    )


def test_the_caller_can_name_the_path_that_an_os_error_concerns() -> None:
    error = report(os_error(errno.ENOENT, "/tmp/copy"), "/w/x")

    assert error.message == "/w/x does not exist."


def test_a_path_in_bytes_is_shown_as_text() -> None:
    error = report(os_error(errno.ENOENT, b"/w/x"))

    assert error.message == "/w/x does not exist."


@pytest.mark.parametrize("path", [None, 5])
def test_an_unknown_path_is_described_in_words_and_left_out_of_the_context(
    path: int | None,
) -> None:
    error = report(os_error(errno.EACCES, path))

    assert texts(error) == (
        "Cannot access the file: permission denied.",
        "Check the owner and the permissions of the file and its directory.",
    )
    assert error.context == {"reason": "permission denied"}


def test_a_denied_access_names_the_directory_too() -> None:
    error = report(os_error(errno.EACCES, "/w/private"))

    assert texts(error) == (
        "Cannot access /w/private: permission denied.",
        "Check the owner and the permissions of /w/private and /w.",
    )


def test_too_many_open_files_are_not_blamed_on_the_disk() -> None:
    error = report(os_error(errno.EMFILE))

    assert error.suggestion == "Raise the limit on open files, for example with `ulimit -n 1024`."


def test_a_limit_on_the_size_of_files_is_not_blamed_on_the_disk() -> None:
    error = report(os_error(errno.EFBIG))

    assert error.suggestion == (
        "If your shell limits the size of files, raise the limit, for example with "
        "`ulimit -f unlimited`."
    )


def test_a_file_that_is_a_mount_point_is_not_blamed_on_the_disk() -> None:
    error = report(os_error(errno.EBUSY))

    assert error.suggestion == ("If the path is a mount point, mount its parent directory instead.")


def test_a_full_disk_leaves_the_old_content() -> None:
    error = report(os_error(errno.ENOSPC))

    assert error.message == "Cannot write /w/x: the disk is full, or your quota is used up."
    assert error.suggestion == (
        "Free up some space, then run the command again. "
        "If /w/x already existed, it still has its old content."
    )


def test_a_read_only_file_system_is_named_as_the_reason() -> None:
    error = ReadOnly("/w/x")

    assert texts(error) == (
        "Cannot change /w/x: the file system is read-only.",
        "Use a directory that you can write to.",
    )


def test_a_missing_file_has_no_reason() -> None:
    error = FileNotFound("/w/x")

    assert error.context == {"path": "/w/x"}
    assert error.suggestion.startswith("Check the path.")


def test_a_result_that_would_be_overwritten_comes_with_what_to_do() -> None:
    error = OutputExists("/w/x", found="it is not a readable file")

    assert error.message == "/w/x already exists: it is not a readable file. Nothing was changed."
    assert error.suggestion == (
        "To keep both, pass another --output or --session-id. To replace it, first delete it."
    )
    assert error.context == {"path": "/w/x", "found": "it is not a readable file"}
    assert error.exit_status == 6


def test_an_unknown_path_leaves_the_other_facts_in_the_context() -> None:
    error = OutputExists("the output", found="it is a link")

    assert error.context == {"found": "it is a link"}


def test_a_single_failure_can_have_its_own_hint() -> None:
    error = FileNotFound("/w/x", suggestion="Create it.")

    assert error.suggestion == "Create it."
