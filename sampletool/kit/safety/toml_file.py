"""Read, change and write a TOML file so that nobody's change is lost: see `editing_toml`.

The link is resolved, the lock of the *resolved* file is taken, the link is looked at again, and only then is the file
read: what was read before the lock is already old. The lock is never the file itself, because replacing it would leave
the lock on the old one. Unchanged content is not written.
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
from .toml_limits import MAX_TOML_BYTES, check_limits

try:
    from _blake2 import blake2b  # the rest of hashlib loads OpenSSL, which takes longer than all that a call does here
except ImportError:
    from hashlib import blake2b

if TYPE_CHECKING:
    from .lock import Hold, MakeLock

_DEEPEST = 150
"""Tables and lists within each other, at the most: far below what recursion can do."""
_BOM = b"\xef\xbb\xbf"


class TomlText(NamedTuple):
    """What a file held at one moment. A file that is not there is an empty one."""

    path: Path
    text: str
    version: str
    has_bom: bool = False
    links: int = 1

    @property
    def document(self) -> dict[str, Any]:
        """To be read, not to be changed: the next caller gets the same one."""
        try:
            return parse(self.text)
        except (RecursionError, ValueError) as error:
            reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
            raise InvalidToml(str(self.path), reason) from error


class TomlEdit:
    """A file that is being edited: change `text`, then `write`. Without a lock it is a forecast: nothing is written."""

    def __init__(self, before: TomlText, hold: "Hold | None" = None) -> None:
        self.before = before
        self.text = before.text
        self.version = before.version
        self.hold = hold

    def write(self) -> None:
        """Replace the file, unless the text is what it was. After a signal or the deadline nothing is changed."""
        before = self.before
        if self.hold is None or self.text == before.text:
            return
        if before.links and not (before.path.stat().st_mode & 0o222 and os.access(before.path, os.W_OK)):
            raise PermissionError(errno.EACCES, "the file is read-only", str(before.path))
        content = (_BOM if before.has_bom else b"") + self.text.encode()
        if len(content) > MAX_TOML_BYTES:
            raise UnsafePath(str(before.path), f"it would become larger than {MAX_TOML_BYTES} bytes")
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
    """Yield the file, locked until the block ends, and read under the lock.

    `lock_path_of` returns the path of the lock of a file. By default, it is `lock_beside`.
    """
    from .lock import Lock

    make_lock = make_lock or Lock
    lock_path_of = lock_path_of or lock_beside
    while True:
        resolved = resolve(path)
        with make_lock(lock_path_of(resolved), resolved.name).exclusively(timeout_seconds) as hold:
            if resolve(path) != resolved:
                continue
            if hold.crashed is not None:
                sweep(resolved)
            yield TomlEdit(read_toml(resolved), hold)
            return


def read_toml(path: Path) -> TomlText:
    """Needs no lock: a replaced file is seen whole, before or after."""
    try:
        content = read_regular(path, MAX_TOML_BYTES)
        links = path.stat().st_nlink
    except FileNotFoundError:
        return TomlText(path, "", _version(b""), links=0)
    try:
        text = content.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise InvalidToml(str(path), f"byte {error.start} is not UTF-8") from error
    return TomlText(path, text, _version(content), has_bom=content.startswith(_BOM), links=links)


def resolve(path: Path) -> Path:
    """Where the content lies: the end of the chain of links, also of a dangling one."""
    return Path(os.path.realpath(path))


@lru_cache(maxsize=4)
def parse(text: str) -> dict[str, Any]:
    """To be read, not to be changed: the next caller gets the same one."""
    check_limits(text)
    document = tomllib.loads(text)
    level: list[Any] = [document]
    for _ in range(_DEEPEST):
        each = (value for table in level for value in (table.values() if isinstance(table, dict) else table))
        level = [value for value in each if isinstance(value, (dict, list))]
        if not level:
            return document
    raise RecursionError


def lock_beside(resolved: Path) -> Path:
    """Return the path of the lock of a file: a hidden file in the same directory, which is created."""
    directory = resolved.parent
    if not directory.exists():
        private_directory(directory)
    return directory / f".{resolved.name}.lock"


def _version(content: bytes) -> str:
    """Opaque to callers; the same for the same bytes."""
    return blake2b(content, digest_size=8).hexdigest()
