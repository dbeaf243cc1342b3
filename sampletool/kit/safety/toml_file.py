"""Read, change and replace a TOML file. If two processes change it, both changes are kept.

    with editing_toml(Path("app.toml")) as file:
        file.text = file.text.replace("level = 1", "level = 2")
        file.write()

`editing_toml` takes these steps, in this order:

1. Resolve the path: follow symbolic links to the file that has the content. If the link itself were
   replaced, it would become a file, and the file that it led to would keep the old content.
2. Take the lock of the resolved file. So processes that use different links wait for each other.
3. Resolve the path again. While this process waited, another may have pointed the link at another
   file, which has another lock. Then start again.
4. Read the file. A text that was read before the lock was taken may be older than the change that
   this process waited for, and writing it back would undo that change.

The lock is a file of its own. The TOML file cannot be its own lock: `write` replaces it with a new
file, while a process that waits has the old one open. That process would get a lock on a file that
has no name any more, and the next one would lock the new file at the same time.

Reading alone needs no lock, because the file is replaced atomically (see atomic_file.py).
"""

import errno
import os
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .atomic_file import read_regular, replace, sweep
from .errors import InvalidToml, UnsafePath
from .private_directory import private_directory
from .toml_limits import MAX_TOML_BYTES, TOO_LARGE, check_limits

try:
    # hashlib also loads OpenSSL, which takes 2 to 6 ms. This is the part of it that is needed here.
    from _blake2 import blake2b
except ImportError:
    # The module is a detail of CPython, which another Python may not have.
    from hashlib import blake2b

if TYPE_CHECKING:
    from .lock import Hold, MakeLock

_MAX_DEPTH = 150
"""The number of tables and lists that may be in each other, far below the limit of recursion."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The first bytes of a UTF-8 file that some editors on Windows have saved.

tomllib refuses them. A file that has them keeps them.
"""

_ALL_WRITE_BITS = 0o222


class TomlText(NamedTuple):
    """The content of a file at one moment. A file that does not exist has an empty text."""

    path: Path
    text: str
    version: str
    """A checksum of the content. Two contents have the same version only if they are equal."""
    has_byte_order_mark: bool
    links: int
    """The number of hard links, which are the names of the file. It is 0 if there is no file."""

    @property
    def exists(self) -> bool:
        """Whether there was a file."""
        return self.links > 0

    @property
    def document(self) -> dict[str, Any]:
        """The parsed text. Do not change it: the next caller gets the same object.

        Raise InvalidToml if the text is not TOML, or if it is beyond the limits of `parse`.
        """
        try:
            return parse(self.text)
        except ValueError as error:
            raise InvalidToml(str(self.path), str(error)) from error


class TomlEdit:
    """A file that is being edited: change `text`, then call `write`.

    Without a `hold`, the file is not locked, and `write` changes nothing. This is for a dry run.
    """

    def __init__(self, before: TomlText, hold: "Hold | None" = None) -> None:
        self.before = before
        """The content before the edit."""
        self.text = before.text
        """The new text."""
        self.version = before.version
        """The version of the content that is in the file. A successful `write` changes it."""
        self.hold = hold
        """The lock of the file, or None if the file is not locked and will not be written."""

    def write(self) -> None:
        """Replace the file. Do nothing if the text is the old one, or if the file is not locked.

        Raise PermissionError if the file is read-only, UnsafePath if it would become too large, and
        Interrupted or DeadlineExceeded if this process has to stop. Then the file is unchanged.
        Other errors are those of `atomic_file.replace`.
        """
        before = self.before
        if self.hold is None or self.text == before.text:
            return
        _refuse_read_only(before)
        content = self.text.encode()
        if before.has_byte_order_mark:
            content = _BYTE_ORDER_MARK + content
        # Such a file could be written, but no command could read it again.
        if len(content) > MAX_TOML_BYTES:
            raise UnsafePath(str(before.path), f"it would become {TOO_LARGE}")
        # This is the last moment at which the command can stop without having changed anything.
        self.hold.signals.check()
        replace(before.path, content)
        self.version = _version(content)


@contextmanager
def editing_toml(
    path: Path,
    timeout_seconds: float = 10.0,
    make_lock: "MakeLock | None" = None,
    lock_path_of: Callable[[Path], Path] | None = None,
) -> Iterator[TomlEdit]:
    """Lock the file until the block ends, read it under the lock, and yield it.

    `make_lock` creates the lock, by default a `Lock`. `lock_path_of` returns the path of the lock
    of a resolved file. By default, this is `lock_beside`.

    Raise the errors of `Lock.exclusively` and `read_toml`.
    """
    # Importing the lock takes 17 ms, and most commands only read their settings.
    from .lock import Lock

    if make_lock is None:
        make_lock = Lock
    if lock_path_of is None:
        lock_path_of = lock_beside
    while True:
        resolved = resolve(path)
        lock = make_lock(lock_path_of(resolved), resolved.name)
        with lock.exclusively(timeout_seconds) as hold:
            # While this process waited, the link may have been pointed at another file, which has
            # another lock. Then start again.
            if resolve(path) != resolved:
                continue
            # Only a process that was killed leaves temporary files behind. Remove them.
            if hold.crashed_writer is not None:
                sweep(resolved)
            yield TomlEdit(read_toml(resolved), hold)
            return


def read_toml(path: Path) -> TomlText:
    """Return the content of the file, which is not parsed yet. A missing file counts as empty.

    Raise UnsafePath if it is not a regular file or too large, InvalidToml if it is not UTF-8, and
    OSError if it exists but cannot be read.
    """
    try:
        content = read_regular(path, MAX_TOML_BYTES)
        links = path.stat().st_nlink
    except FileNotFoundError:
        content = b""
        links = 0
    try:
        text = content.removeprefix(_BYTE_ORDER_MARK).decode()
    except UnicodeDecodeError as error:
        raise InvalidToml(str(path), f"byte {error.start} is not UTF-8") from error
    return TomlText(
        path=path,
        text=text,
        version=_version(content),
        has_byte_order_mark=content.startswith(_BYTE_ORDER_MARK),
        links=links,
    )


def resolve(path: Path) -> Path:
    """Return the path of the file that the symbolic links lead to. It may not exist."""
    # Unlike Path.resolve(), this does not fail if two links lead to each other.
    return Path(os.path.realpath(path))


# A command that sets several keys parses the result of each step again before the next one. A file
# of 256 KiB takes 0.1 s.
@lru_cache(maxsize=4)
def parse(text: str) -> dict[str, Any]:
    """Return the parsed text. Do not change it: it is cached, so others get the same object.

    Raise ValueError if the text is not TOML, too large or nested too deep, or if a key or a number
    is too long.
    """
    check_limits(text)
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    except tomllib.TOMLDecodeError:
        # This is a ValueError with a good message.
        raise
    except ValueError as error:
        # int() refuses more than 4,300 digits. Its message is for programmers.
        raise ValueError("a number has too many digits") from error
    _refuse_deep(document)
    return document


def lock_beside(resolved: Path) -> Path:
    """Return the path of the lock of a file: a hidden file in the same directory.

    The file may not exist yet. Create its directory if that does not exist either.
    """
    directory = resolved.parent
    if not directory.exists():
        private_directory(directory)
    return directory / f".{resolved.name}.lock"


def refuse_unwritable(content: TomlText) -> None:
    """Raise PermissionError if this user cannot replace the file of this content.

    This does not write anything, so it can be called long before the file is replaced.
    """
    _refuse_read_only(content)
    # The new file is written next to the old one. If the directory does not exist yet, it will be
    # created in the nearest one that does.
    for directory in content.path.parents:
        if directory.exists():
            if not os.access(directory, os.W_OK | os.X_OK):
                reason = "nothing can be written in this directory"
                raise PermissionError(errno.EACCES, reason, str(directory))
            return


def _refuse_read_only(content: TomlText) -> None:
    """Raise PermissionError if the file of this content exists and is read-only for this user.

    Replacing a file needs no right to write to it, only to its directory. But a person who made a
    file read-only does not expect that a command changes it.
    """
    if not content.exists:
        return
    has_write_bit = content.path.stat().st_mode & _ALL_WRITE_BITS
    # For root, os.access() allows everything, so the bits are looked at too.
    if not has_write_bit or not os.access(content.path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only", str(content.path))


def _refuse_deep(document: dict[str, Any]) -> None:
    """Raise ValueError if too many tables and lists are in each other.

    Many functions that read a document call themselves for each level. tomllib accepts a document
    that is so deep that these functions would raise RecursionError.
    """
    level: list[Any] = [document]
    for _ in range(_MAX_DEPTH):
        next_level = []
        for container in level:
            next_level += _containers_in(container)
        if not next_level:
            return
        level = next_level
    raise ValueError("it is nested too deep")


def _containers_in(container: Any) -> list[Any]:
    """Return the tables and lists that are directly in a table or list."""
    values = container
    if isinstance(container, dict):
        values = container.values()
    return [value for value in values if isinstance(value, (dict, list))]


def _version(content: bytes) -> str:
    return blake2b(content, digest_size=8).hexdigest()
