"""Replace or create a file atomically: a reader sees the old content or the new one, never a part.

    replace(path, b"new content")    # The file may exist or not.
    create(path, b"new content")     # Raises FileExistsError if the file exists.

This also holds after `kill -9` and after a power failure. The terms of this module:

* The *target* is the file that is replaced or created.
* The *temporary file* is a new file in the target's directory, with a random name.
* To *publish* the temporary file is to give it the target's name, in one system call.
* To *flush* a file or directory is to wait until the disk has stored it.

The steps, in this order:

1. Create the temporary file, and write the content to it.
2. Give it the mode, owner, group and extended attributes of the target.
3. Flush it.
4. Publish it.
5. Flush the directory.

If step 1, 2, 3 or 4 fails, the target is unchanged and the temporary file is removed. If step 5
fails, NotFlushed says that the target has its new content. A process that is killed during the
first four steps leaves its temporary file behind. `sweep` removes such files.

Nothing here takes a lock. If two processes read, change and replace the same file, they need a lock
around all three steps. Otherwise one of the changes is lost.
"""

import errno
import fcntl
import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import NotFlushed, UnsafePath

Content = bytes | Iterable[bytes]
"""The content of a file, whole or in blocks."""

Publish = Callable[[Path, Path], None]
"""A function that publishes a temporary file (first argument) as the target (second argument)."""

FOR_ALL = 0o666
"""The mode of a new file that other users may read. The kernel takes away the bits of the umask."""

# O_EXCL: fail if there is already a file or a link with this name, instead of writing to it.
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL

_MAX_STEM_BYTES = 200
"""The longest file name that a temporary name contains as it is. File systems allow 255 bytes."""


def replace(path: Path, content: Content, new_mode: int = 0o600) -> None:
    """Replace the file, or create it if it does not exist.

    An existing file keeps its mode, owner, group and extended attributes. A new file gets the mode
    `new_mode`, without the bits of the umask.

    `path` must not be a symbolic link: the link would be replaced, and not the file it leads to.

    Raise these errors:

    * OSError with the path of the target if a step fails. Then the file is unchanged.
    * UnsafePath if there is a directory, a device or something else that is not a regular file.
    * NotFlushed if the file has its new content, but a power failure could bring back the old one.
    * What the iterator raises, if `content` is an iterator. But an error of the operating system
      gets the path of the target.
    """
    _write_and_publish(path, content, new_mode, _publish_by_rename)


def create(path: Path, content: Content) -> None:
    """Create the file, with the mode `FOR_ALL` (0o666) without the bits of the umask.

    Raise FileExistsError if there is already a file or a link at `path`, even if another process
    has created it a moment ago. Other errors are those of `replace`.
    """
    _write_and_publish(path, content, FOR_ALL, _publish_by_link)


def sweep(path: Path, older_than_seconds: float | None = None) -> None:
    """Remove the temporary files that killed writers of the file at `path` have left behind.

    The name of such a file does not show whether its writer was killed or still runs. So hold the
    lock that all writers of this path use. If there may be writers that use another lock, pass an
    age that the temporary file of a running writer never reaches.

    Skip a file that cannot be removed. Raise OSError if the directory cannot be listed.
    """
    temporary_name = re.compile(rf"\.{re.escape(_stem(path))}\.[0-9]+-[0-9a-f]{{8}}\.tmp")
    for name in os.listdir(path.parent):
        if temporary_name.fullmatch(name) is None:
            continue
        temporary = path.parent / name
        # Another process may remove the same file at this moment.
        with suppress(OSError):
            if older_than_seconds is not None:
                age_seconds = time.time() - temporary.lstat().st_mtime
                if age_seconds <= older_than_seconds:
                    continue
            temporary.unlink()


def read_regular(path: Path, limit_bytes: int, *, follow: bool = True) -> bytes:
    """Return the whole content of a regular file.

    Raise UnsafePath if it is not a regular file, or larger than `limit_bytes`. Raise OSError if it
    cannot be opened. With `follow=False`, this includes a symbolic link.
    """
    with opened_regular(path, follow=follow) as descriptor:
        size_bytes = os.fstat(descriptor).st_size
        if size_bytes > limit_bytes:
            raise UnsafePath(str(path), f"it is larger than {_show_size(limit_bytes)}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            # With read(limit_bytes), Python would first allocate a buffer of that size.
            return file.read(size_bytes)


@contextmanager
def opened_regular(path: Path, *, follow: bool = True) -> Iterator[int]:
    """Open a regular file for reading, and yield its descriptor until the block ends.

    Raise UnsafePath if it is not a regular file. Raise OSError if it cannot be opened. With
    `follow=False`, this includes a symbolic link.
    """
    # Without O_NONBLOCK, open() would wait until another process opens the FIFO for writing.
    flags = os.O_RDONLY | os.O_NONBLOCK
    if not follow:
        flags |= os.O_NOFOLLOW
    with opened(path, flags) as descriptor:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnsafePath(str(path), "it is not a regular file")
        yield descriptor


def _show_size(size_bytes: int) -> str:
    """Return the size in the largest unit that needs no fraction, for example `256 KiB`."""
    if size_bytes % (1024 * 1024) == 0:
        return f"{size_bytes // (1024 * 1024)} MiB"
    if size_bytes % 1024 == 0:
        return f"{size_bytes // 1024} KiB"
    return f"{size_bytes} bytes"


@contextmanager
def opened(path: Path, flags: int, new_mode: int = 0o600) -> Iterator[int]:
    """Open a file with the flags of os.open(), and yield its descriptor until the block ends.

    A child process does not inherit the descriptor: Python adds O_CLOEXEC to the flags.
    """
    descriptor = os.open(path, flags, new_mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of the content. A single call of os.write() may write only the first part of it."""
    remaining = memoryview(content)
    while remaining:
        written_bytes = os.write(descriptor, remaining)
        remaining = remaining[written_bytes:]


def flush_directory(directory: Path) -> None:
    """Wait until the disk has stored the names that are in the directory."""
    with opened(directory, os.O_RDONLY | os.O_DIRECTORY) as descriptor:
        flush(descriptor)


def flush(descriptor: int) -> None:
    """Wait until the disk has stored the file or directory. A power failure cannot undo it then."""
    # On macOS, fsync() only waits until the data is in the disk's own cache, which a power failure
    # empties. F_FULLFSYNC, which only macOS has, also waits until the disk has stored the cache.
    full_flush = getattr(fcntl, "F_FULLFSYNC", None)
    if full_flush is not None:
        # Some file systems, such as network drives, do not support it. They get an fsync().
        with suppress(OSError):
            fcntl.fcntl(descriptor, full_flush)
            return
    os.fsync(descriptor)


def _write_and_publish(target: Path, content: Content, mode: int, publish: Publish) -> None:
    """Write a temporary file, publish it as the target, and flush the directory.

    `publish` gives the temporary file the name of the target: by a rename, which replaces an
    existing target, or by a link, which fails if there is one. The top of this module explains the
    steps and their order.
    """
    temporary = _temporary_path(target)
    with _errors_about(target):
        descriptor = os.open(temporary, _CREATE_FLAGS, mode)
        with _removed_on_failure(temporary):
            try:
                _write_blocks(descriptor, content)
                _copy_metadata(target, descriptor)
                # Many file systems store a new name before the content of its file. Without this
                # flush, a power failure could leave an empty file under the target's name.
                flush(descriptor)
            finally:
                # Close it before it is published: a network file system may report only here that
                # writing has failed.
                os.close(descriptor)
            publish(temporary, target)
    _flush_parent(target)


def _temporary_path(target: Path) -> Path:
    """Return a new path in the target's directory. A rename works only within one file system.

    Two writers get two paths: the process ID differs, or else the random part. The random part also
    keeps other users from guessing the name and putting a file of their own there.
    """
    random_part = os.urandom(4).hex()
    return target.with_name(f".{_stem(target)}.{os.getpid()}-{random_part}.tmp")


def _stem(target: Path) -> str:
    """Return the part of a temporary name that identifies the target.

    This is the target's name. A name that is so long that a temporary name could not contain it is
    replaced by its checksum.
    """
    name = os.fsencode(target.name)
    if len(name) <= _MAX_STEM_BYTES:
        return target.name
    return f"long-name-{zlib.crc32(name):08x}"


@contextmanager
def _errors_about(target: Path) -> Iterator[None]:
    """Let each OSError of the block name the target.

    The original error names the temporary file, of which the caller knows nothing, or no file.
    """
    try:
        yield
    except OSError as error:
        # The system gives each of its errors a number. One without a number comes from Python
        # code, which has written a message of its own.
        if error.errno is None:
            raise
        # OSError() chooses the subclass by the number: for EEXIST, it returns a FileExistsError.
        raise OSError(error.errno, error.strerror, str(target)) from error


@contextmanager
def _removed_on_failure(temporary: Path) -> Iterator[None]:
    """Remove the temporary file if the block raises an exception."""
    try:
        yield
    except BaseException:
        # If it cannot be removed, the first failure is still the one to report.
        with suppress(OSError):
            temporary.unlink()
        raise


def _write_blocks(descriptor: int, content: Content) -> None:
    blocks = [content] if isinstance(content, bytes) else content
    for block in blocks:
        write_all(descriptor, block)


def _publish_by_rename(temporary: Path, target: Path) -> None:
    """Rename the temporary file. The target, if it exists, is replaced."""
    try:
        os.replace(temporary, target)
    except OSError as error:
        # The system's own text is "Device or resource busy", which sounds like a broken disk.
        if error.errno == errno.EBUSY:
            reason = "the system uses it, for example as a mount point, and does not replace it"
            raise OSError(errno.EBUSY, reason) from error
        raise


def _publish_by_link(temporary: Path, target: Path) -> None:
    """Give the file the target's name, then remove its temporary name.

    link() fails if the target exists. A rename would replace it, and looking for the target before
    the rename would not help: another process could create it in between.
    """
    os.link(temporary, target)
    temporary.unlink()


def _flush_parent(target: Path) -> None:
    """Flush the target's directory. Raise NotFlushed if this fails.

    Without this flush, a power failure could bring back the old file, although the caller has
    already reported that the new content is saved.
    """
    try:
        flush_directory(target.parent)
    except OSError as error:
        raise NotFlushed(str(target), str(error.strerror).lower()) from error


def _copy_metadata(target: Path, descriptor: int) -> None:
    """Give the temporary file (`descriptor`) the owner, mode and extended attributes of the target.

    Do nothing if there is no target yet. Raise UnsafePath if it is not a regular file: otherwise a
    rename to /dev/null by root would replace the device with a file.
    """
    try:
        status = target.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(status.st_mode):
        raise UnsafePath(str(target), "it is not a regular file")
    _copy_owner(status, descriptor)
    # After the owner, because a change of the owner clears the set-user-ID and set-group-ID bits.
    os.fchmod(descriptor, stat.S_IMODE(status.st_mode))
    _copy_attributes(target, descriptor)


def _copy_owner(target_status: os.stat_result, descriptor: int) -> None:
    """Give the temporary file the owner and group of the target.

    Raise PermissionError if they differ and this user may not change them. A file that changes its
    owner or group could become unreadable for those who use it.
    """
    uid, gid = target_status.st_uid, target_status.st_gid
    temporary_status = os.fstat(descriptor)
    if (temporary_status.st_uid, temporary_status.st_gid) == (uid, gid):
        return
    try:
        os.fchown(descriptor, uid, gid)
    except PermissionError as error:
        reason = f"the new file cannot be given its owner and group ({uid}:{gid})"
        raise PermissionError(errno.EPERM, reason) from error


def _copy_attributes(target: Path, descriptor: int) -> None:
    """Give the temporary file the extended attributes of the target, such as access control lists.

    Skip an attribute that cannot be copied. Some can be set only by root or by the system.
    """
    # Python has these functions on Linux only.
    if not hasattr(os, "listxattr"):
        return
    try:
        names = os.listxattr(target)
    except OSError:
        # The file system has no extended attributes.
        return
    for name in names:
        with suppress(OSError):
            os.setxattr(descriptor, name, os.getxattr(target, name))
