"""Replace a file so that readers see the old text or the new text, never half, also after a power cut.

Write beside, flush to disk, rename over, flush the directory. If anything fails before the rename, the old file is
untouched and the temporary one is gone; if the last flush fails, NotFlushed says that the file is changed. After
kill -9 the temporary file is litter, which `sweep` removes. Does not lock: two writers need a lock around reading,
changing and replacing.
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

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_LONGEST_STEM_BYTES = 200

FOR_ALL = 0o666
"""The mode of a new file that others are to read, as far as the umask lets them."""


@contextmanager
def opened(path: Path, flags: int, new_mode: int = 0o600) -> Iterator[int]:
    """A descriptor that is closed when the block ends."""
    descriptor = os.open(path, flags, new_mode)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def replace(path: Path, content: bytes | Iterable[bytes], new_mode: int = 0o600) -> None:
    """`path` is already resolved: replacing a link would destroy it. Mode, owner and attributes are kept."""
    _put(path, content, new_mode, os.replace)


def create(path: Path, content: bytes | Iterable[bytes]) -> None:
    """Like `replace`, but raises FileExistsError if `path` exists. Mode 0o666 minus the umask."""
    _put(path, content, FOR_ALL, _link)


def _put(path: Path, content: bytes | Iterable[bytes], mode: int, publish: Callable[[Path, Path], None]) -> None:
    temporary = path.with_name(f".{_stem(path)}.{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with opened(temporary, _NEW, mode) as descriptor:
            for block in (content,) if isinstance(content, bytes) else content:
                write_all(descriptor, block)
            _keep_metadata(path, descriptor)
            flush(descriptor)
        publish(temporary, path)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)
        raise
    try:
        flush_directory(path.parent)
    except OSError as error:
        raise NotFlushed(str(path), (error.strerror or str(error)).lower()) from error


def _stem(path: Path) -> str:
    """What temporary names of this file begin with, so that they are not longer than a name may be."""
    name = os.fsencode(path.name)
    return path.name if len(name) <= _LONGEST_STEM_BYTES else f"long-name-{zlib.crc32(name):08x}"


def _link(temporary: Path, path: Path) -> None:
    """A second name is refused where there is one; a rename would replace it."""
    os.link(temporary, path, follow_symlinks=False)
    temporary.unlink()


def sweep(path: Path, older_than_seconds: float = 0.0) -> None:
    """Remove what writers of this file left when they were killed. Only under the lock that they hold.

    With an age where some writers may have another lock: the temporary file of a living one is never that old.
    """
    temporary = re.compile(rf"\.{re.escape(_stem(path))}\.[0-9]+-[0-9a-f]{{8}}\.tmp")
    for name in os.listdir(path.parent):
        if temporary.fullmatch(name):
            litter = path.parent / name
            with suppress(OSError):
                if not older_than_seconds or time.time() - litter.lstat().st_mtime > older_than_seconds:
                    litter.unlink()


def read_regular(path: Path, limit_bytes: int, *, follow: bool = True) -> bytes:
    """The whole content of a regular file. A FIFO, a device or a directory is an error, not a wait."""
    no_links = 0 if follow else os.O_NOFOLLOW
    with opened(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | no_links) as descriptor:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafePath(str(path), "it is not a regular file")
        if found.st_size > limit_bytes:
            raise UnsafePath(str(path), f"it is larger than {limit_bytes} bytes")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(found.st_size)  # a buffer of the limit would be allocated whole


def flush_directory(directory: Path) -> None:
    with opened(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as descriptor:
        flush(descriptor)


def flush(descriptor: int) -> None:
    """To the disk itself: on macOS fsync ends at the disk's own cache, which a power cut empties."""
    to_the_disk = getattr(fcntl, "F_FULLFSYNC", None)
    if to_the_disk is not None:
        with suppress(OSError):  # not every file system knows it
            fcntl.fcntl(descriptor, to_the_disk)
            return
    os.fsync(descriptor)


def write_all(descriptor: int, content: bytes) -> None:
    left = memoryview(content)
    while left:
        left = left[os.write(descriptor, left) :]


def _keep_metadata(path: Path, descriptor: int) -> None:
    """Mode and owner have to be kept; an attribute that the system will not let us copy is left behind."""
    try:
        old = path.stat()
    except FileNotFoundError:
        return
    if not stat.S_ISREG(old.st_mode):
        raise UnsafePath(str(path), "it is not a regular file")
    mine = os.fstat(descriptor)
    if (old.st_uid, old.st_gid) != (mine.st_uid, mine.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            reason = f"the new file cannot be given its owner and group ({old.st_uid}:{old.st_gid})"
            raise PermissionError(errno.EPERM, reason, str(path)) from None
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    with suppress(OSError, AttributeError):  # macOS has none that Python knows
        for name in os.listxattr(path):
            with suppress(OSError):
                os.setxattr(descriptor, name, os.getxattr(path, name))
