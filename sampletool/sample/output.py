"""Publish one result file so that nobody is ever silently overwritten.

A result names what it was made of, its *identity*; the same again is `unchanged`, and is not computed. Anything else
that is at the path is OUTPUT_EXISTS, before the work and again when it is published, unless overwriting was asked
for. Of two that write one path at once the second gets LOCK_HELD. The lock is the user's, so callers who do not share
it (another HOME, another user) are kept apart by the file system: publishing makes a link, which never replaces.
A result that was cut or edited by hand is not taken for one of ours: its last line is a digest of all before it.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Literal

from ..kit.contract.expected import EXPECTED
from ..kit.contract.file_errors import OutputExists
from ..kit.places import session_root, state_directory
from ..kit.safety.atomic_file import FOR_ALL, create, read_regular, replace, sweep
from ..kit.safety.errors import UnsafePath
from ..kit.safety.private_directory import private_directory

_HEAD = b'{"about":'
_LARGEST_BYTES = 64 * 1024 * 1024
_SEAL = '"sha256":"{}"}}\n'
_LITTER_SECONDS = 3600.0

OutputEffect = Literal["created", "updated", "unchanged"]
Columns = list[dict[str, Any]]


def look(path: Path, identity: dict[str, Any], *, overwrite: bool) -> tuple[OutputEffect, Columns | None]:
    """What publishing a result of this identity would do now, and its columns if it is there already."""
    if not os.path.lexists(path):
        return "created", None
    what, found = _read(path)
    if found and found["about"] == identity:
        return "unchanged", found["columns"]
    if not overwrite:
        raise OutputExists(str(path), found=what)
    if path.is_symlink() or not path.is_file():
        raise UnsafePath(str(path), "it is not a regular file")
    return "updated", None


def publish(path: Path, identity: dict[str, Any], columns: Columns, *, overwrite: bool) -> OutputEffect:
    """Under the lock of `lock_path`. Each column is a line of its own."""
    sweep(path, _LITTER_SECONDS)
    effect, _ = look(path, identity, overwrite=overwrite)
    lines = ",\n".join(map(_json, columns))
    content = _sealed(f'{{"about":{_json(identity)},\n"columns":[\n{lines}],\n'.encode())
    if overwrite:
        replace(path, content, FOR_ALL)
        return effect
    try:
        create(path, content)
    except FileExistsError:  # a process that does not share our lock was faster
        return look(path, identity, overwrite=False)[0]
    return "created"


def lock_path(path: Path) -> Path:
    """In a session beside the output, to go with it; elsewhere in a directory of the user's own, and never removed.

    There it is named by the directory's inode: however a path is spelt, it is the same lock.
    """
    if path.parent.parent == Path(os.path.realpath(session_root())):
        return path.with_name(f".{path.name}.lock")
    directory = os.stat(path.parent)
    name = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    locks = private_directory(private_directory(state_directory()) / "locks")
    return locks / f"output-{directory.st_dev:x}-{directory.st_ino:x}-{name}.lock"


def _read(path: Path) -> tuple[str, dict[str, Any] | None]:
    """What is there, in words; and the result, if it is one."""
    try:
        content = read_regular(path, _LARGEST_BYTES, follow=False)
    except EXPECTED:
        return "it is not a readable file", None
    if not content.startswith(_HEAD):
        return "this command did not create it", None
    if content != _sealed(content[: -len(_SEAL.format("0" * 64))]):
        return "it was changed after this command created it", None
    return "it is the result of other inputs or options", json.loads(content)


def _sealed(content: bytes) -> bytes:
    return content + _SEAL.format(hashlib.sha256(content).hexdigest()).encode()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
