"""Publish one result file, so that no command ever overwrites the result of another one.

A result contains its *identity*: everything that decides about its content. A second command with
the same identity finds the result and computes nothing. If something else is at the path, the
command fails with OUTPUT_EXISTS: before the work, and again when it publishes.

Two commands that write to one path take the same lock. It belongs to the user, so two users share
no lock, and neither do two home directories. The file system keeps them apart: a result is
published as a hard link, and link() never replaces a file.

The last line of a result is a digest of everything before it. So a result that was cut off or
edited by hand is recognized.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Literal

from ..kit.contract.expected import EXPECTED
from ..kit.contract.file_errors import OutputExists
from ..kit.places import session_root, state_directory
from ..kit.safety.atomic_file import create, read_regular, sweep
from ..kit.safety.private_directory import private_directory

_HEAD = b'{"about":'
_SEAL = '"sha256":"{}"}}\n'
_SEAL_BYTES = len(_SEAL.format("0" * 64))
_MAX_RESULT_BYTES = 64 * 1024 * 1024
_LITTER_SECONDS = 3600.0
"""How old a temporary file is when it is removed. A younger one may belong to a running command."""

OutputEffect = Literal["created", "unchanged"]
Identity = dict[str, Any]
Columns = list[dict[str, Any]]


def check_output(path: Path, identity: Identity) -> tuple[OutputEffect, Columns | None]:
    """Return what publishing would do, and the columns of the result if it is there already.

    Raise OutputExists if there is something else.
    """
    if not os.path.lexists(path):
        return "created", None
    description, result = _read(path)
    if result is not None and result["about"] == identity:
        return "unchanged", result["columns"]
    raise OutputExists(str(path), found=description)


def publish(path: Path, identity: Identity, columns: Columns) -> OutputEffect:
    """Write the result, and return what was done. Hold the lock at `lock_path`.

    Raise OutputExists if there is something else at the path.
    """
    sweep(path, _LITTER_SECONDS)
    # Another command may have published a result since the caller has checked.
    check_output(path, identity)
    lines = ",\n".join(_json(column) for column in columns)
    content = _with_checksum(f'{{"about":{_json(identity)},\n"columns":[\n{lines}],\n'.encode())
    try:
        create(path, content)
    except FileExistsError:
        # A command that does not share our lock was faster. It may have the same result.
        effect, _columns = check_output(path, identity)
        return effect
    return "created"


def lock_path(path: Path) -> Path:
    """Return the path of the lock of an output.

    In a session, the lock is next to the output, and is removed together with it. Elsewhere, it is
    in a directory of the user. There, its name contains the inode of the output's directory, so
    that it is the same lock for each spelling of the path.
    """
    is_in_session = path.parent.parent == Path(os.path.realpath(session_root()))
    if is_in_session:
        return path.with_name(f".{path.name}.lock")
    parent = os.stat(path.parent)
    name_hash = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    locks_directory = private_directory(private_directory(state_directory()) / "locks")
    return locks_directory / f"output-{parent.st_dev:x}-{parent.st_ino:x}-{name_hash}.lock"


def _read(path: Path) -> tuple[str, dict[str, Any] | None]:
    """Return what is at this path in words, and the result if it is one."""
    try:
        content = read_regular(path, _MAX_RESULT_BYTES, follow=False)
    except EXPECTED:
        return "it is not a readable file", None
    if not content.startswith(_HEAD):
        return "this command did not create it", None
    if content != _with_checksum(content[:-_SEAL_BYTES]):
        return "it was changed after this command created it", None
    return "it is the result of other inputs or options", json.loads(content)


def _with_checksum(content: bytes) -> bytes:
    """Return the content with its checksum at the end, which shows later whether it was changed."""
    return content + _SEAL.format(hashlib.sha256(content).hexdigest()).encode()


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
