"""Read, change and write a TOML file so that no change by anybody else is lost.

The link is resolved, the lock of the *resolved* file is taken, and only then is the file read: what was read before
the lock is already old. The lock is never the file itself, because replacing it would leave the lock on the old one.
Unchanged content is not written.
"""

import hashlib
import os
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..contract.file_errors import InvalidToml, PermissionDenied, UnsafePath
from ..program import WORKSPACE_DIRECTORY, WORKSPACE_FILE
from .atomic_file import read_regular, replace, sweep

if TYPE_CHECKING:
    from .lock import Hold

_LIMIT_BYTES = 4 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"


class TomlText(NamedTuple):
    """What a file held at one moment. A file that is not there is an empty one."""

    path: Path
    text: str
    version: str
    exists: bool = True
    has_bom: bool = False
    links: int = 1

    @property
    def document(self) -> dict[str, Any]:
        """To be read, not to be changed: who asks again gets the same one."""
        try:
            return _parse(self.text)
        except tomllib.TOMLDecodeError as error:
            raise InvalidToml(str(self.path), str(error)) from error
        except (RecursionError, ValueError) as error:
            raise InvalidToml(str(self.path), f"{type(error).__name__} while reading it") from error


def read_toml(path: Path) -> TomlText:
    """Needs no lock: a replaced file is seen whole, before or after."""
    try:
        content = read_regular(path, _LIMIT_BYTES)
        links = path.stat().st_nlink
    except FileNotFoundError:
        return TomlText(path, "", _version(b""), exists=False)
    try:
        text = content.removeprefix(_BOM).decode()
    except UnicodeDecodeError as error:
        raise InvalidToml(str(path), f"byte {error.start} is not UTF-8") from error
    return TomlText(path, text, _version(content), has_bom=content.startswith(_BOM), links=links)


def resolve(path: Path) -> Path:
    """Where the content lies: the end of the chain of links, also of a dangling one."""
    return Path(os.path.realpath(path))


def lock_path(resolved: Path) -> Path:
    """A workspace's file is locked in its own directory; any other has its lock beside it, dot-named."""
    if resolved.name == WORKSPACE_FILE:
        return resolved.parent / WORKSPACE_DIRECTORY / "locks" / f"{WORKSPACE_FILE}.lock"
    return resolved.with_name(f".{resolved.name}.lock")


def edit_toml(
    path: Path, exclusively: "Callable[[Path], AbstractContextManager[Hold]]", change: Callable[[TomlText], str]
) -> tuple[TomlText, TomlText]:
    """Before and after. `exclusively` takes the lock of a resolved path; `change` makes the new text, or raises."""
    while True:
        resolved = resolve(path)
        with exclusively(resolved) as hold:
            if resolve(path) != resolved:
                continue
            if hold.crashed is not None:
                sweep(resolved)
            before = read_toml(resolved)
            text = change(before)
            if text == before.text:
                return before, before
            return before, _write(before, text)


def _write(before: TomlText, text: str) -> TomlText:
    if before.exists and not (before.path.stat().st_mode & 0o222 and os.access(before.path, os.W_OK)):
        raise PermissionDenied(str(before.path), "the file is read-only")
    content = (_BOM if before.has_bom else b"") + text.encode()
    if len(content) > _LIMIT_BYTES:
        raise UnsafePath(str(before.path), f"it would become larger than {_LIMIT_BYTES} bytes")
    replace(before.path, content)
    return TomlText(before.path, text, _version(content), has_bom=before.has_bom)


@lru_cache(maxsize=4)
def _parse(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


def _version(content: bytes) -> str:
    """Opaque to callers; the same for the same bytes."""
    return hashlib.sha256(content).hexdigest()[:16]
