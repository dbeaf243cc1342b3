"""The log of commands: one file for all processes, and one line of JSON for each command.

Processes need no lock to add a line. The file is opened with O_APPEND, so the kernel puts each
write at the end of the file, whole. When the file has grown too large, one process renames it to
the second name in NAMES. A process that still has it open then adds its line there.

Keys, names and paths are logged, but no values.

The file is not flushed to the disk. Nothing is lost if a process is killed, but a power cut can
lose the last lines.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .contract.response import Response
from .contract.text import redact
from .safety.atomic_file import opened
from .safety.errors import UnsafePath
from .safety.private_directory import private_directory

NAMES = ("calls.jsonl", "calls.before.jsonl")
"""The current file, and the one before it. There are no older ones."""

MAX_FILE_BYTES = 4 * 1024 * 1024

_LOGGED_META = (
    "command",
    "exit_code",
    "duration_ms",
    "request_id",
    "cwd",
    "session_id",
    "trace_id",
    "dry_run",
)

_SUBJECT_MEMBERS = ("key", "name", "id", "queue", "lock", "path", "output")
"""The members of a response that show what the command was about."""

_MAX_LISTED_ITEMS = 20
_MAX_SUBJECT_CHARACTERS = 200

_MAX_READ_CHARACTERS = 1000
"""How much of a subject is read. Some more than is kept, so that no password is cut in half.

The half of a URL would not look like a URL, so its password would not be hidden.
"""


def call_of(response: Response, more_meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line that is logged for a response: the members of `Call` in commands/log.py.

    `more_meta` has members of `meta` that the response lacks because they were not requested.
    """
    meta = {**response.meta, **more_meta}
    call = {name: meta[name] for name in _LOGGED_META if name in meta}
    call["at"] = meta["timestamp"]
    data = response.data
    if response.error is not None:
        call["code"] = response.error.code
        # After a failure, `data` is what was done before. The facts of the error have subjects too.
        data = {"did": data, **response.error.context}
    if isinstance(data, dict):
        if "effect" in data:
            call["effect"] = data["effect"]
        call["about"] = _subjects_of(data)
    else:
        call["about"] = []
    return call


def append(directory: Path, call: Mapping[str, Any], max_bytes: int = MAX_FILE_BYTES) -> None:
    """Add a line to the log. If the file is then too large, give it the second name.

    Raise UnsafePath or OSError if there is something else in the place of the file.
    """
    line = json.dumps(call, separators=(",", ":")).encode() + b"\n"
    path = private_directory(directory) / NAMES[0]
    is_logged = False
    while not is_logged:
        is_logged = _append_once(path, line, max_bytes)


def _append_once(path: Path, line: bytes, max_bytes: int) -> bool:
    """Add a line to the file at this path. Return False if the file was removed meanwhile."""
    with opened_log(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
        if not _ends_with_newline(descriptor):
            # The disk was full when the last line was written, so that it is only a part.
            line = b"\n" + line
        os.write(descriptor, line)
        status = os.fstat(descriptor)
        if status.st_nlink == 0:
            # Between open() and write(), this process was stopped for so long that two other files
            # have been renamed meanwhile. The file that now has the line has no name any more.
            return False
        if status.st_size > max_bytes:
            _put_away(path, descriptor)
        return True


def _ends_with_newline(descriptor: int) -> bool:
    """Return whether the last byte of the file is a newline, or the file is empty."""
    size = os.fstat(descriptor).st_size
    if size == 0:
        return True
    return os.pread(descriptor, 1, size - 1) == b"\n"


def _put_away(path: Path, descriptor: int) -> None:
    """Give the file the second name, unless another process does so at the same time."""
    # At the top, this would cost each command 10 ms (20% of `config get`), because of filelock.
    from .safety.flock import EXCLUSIVE, try_lock

    # Closing the descriptor releases the lock.
    if not try_lock(descriptor, EXCLUSIVE):
        return
    # Another process may have done it before this one got the lock. Then there is a new file at
    # the path, or none yet.
    with suppress(FileNotFoundError):
        is_current_file = os.path.samestat(os.fstat(descriptor), path.stat())
        if is_current_file:
            path.replace(path.with_name(NAMES[1]))


@contextmanager
def opened_log(path: Path, flags: int) -> Iterator[int]:
    """Open a file of the log, and yield its descriptor until the block ends.

    Raise UnsafePath if it is not a regular file, or has a second name: a hard link would lead to a
    file that is not the log. Raise OSError if it is a symbolic link.
    """
    # Without O_NONBLOCK, opening a FIFO would wait until it has a reader.
    safe_flags = flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with opened(path, safe_flags) as descriptor:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            raise UnsafePath(str(path), "it is not a regular file with one name")
        yield descriptor


def _subjects_of(data: dict[str, Any]) -> list[str]:
    """Return the keys, names and paths in a response, and in the first items that it lists."""
    items = []
    for member in data.values():
        if isinstance(member, list):
            items += [item for item in member if isinstance(item, dict)]
    # A dictionary, not a set, because it keeps the order.
    subjects: dict[str, None] = {}
    for record in [data, *items[:_MAX_LISTED_ITEMS]]:
        for name in _SUBJECT_MEMBERS:
            subject = record.get(name)
            if isinstance(subject, str):
                subjects[_shorten(subject)] = None
    return list(subjects)


def _shorten(subject: str) -> str:
    """Return the beginning of a text, without passwords."""
    return redact(subject[:_MAX_READ_CHARACTERS])[:_MAX_SUBJECT_CHARACTERS]
