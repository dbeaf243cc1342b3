"""The log of calls: one file for all processes, one line for each call, one write for each line.

The kernel puts each write of an appending descriptor at the end, whole, so writers need no lock. A file that has grown
is put away under a lock; a line that is written to it afterwards is kept with it. Names and paths are logged, never
values. Not flushed to the disk: kill -9 loses no line, a power cut may lose the last ones.
"""

import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .contract.answer import Answer, to_data
from .contract.text import redact
from .safety.atomic_file import opened
from .safety.errors import UnsafePath
from .safety.private_directory import private_directory

NAMES = ("calls.jsonl", "calls.before.jsonl")
"""The file that is written to, and the one before it. Older ones are not kept."""
_OF_META = ("command", "exit_code", "duration_ms", "request_id", "cwd", "session_id", "trace_id", "dry_run")
_SUBJECTS = ("key", "name", "id", "queue", "lock", "path", "output")
"""The members of an answer that say what a call was about."""


def call_of(answer: Answer) -> dict[str, Any]:
    """What is logged of a call: the members of `Call` in commands/log.py."""
    meta, data = answer.meta, to_data(answer.result)
    call = {name: meta[name] for name in _OF_META if name in meta} | {"at": meta["timestamp"]}
    if answer.error:
        call["code"], data = answer.error.code, {"did": data, **answer.error.context}
    if isinstance(data, dict) and "effect" in data:
        call["effect"] = data["effect"]
    return call | {"about": _subjects_of(data)}


def append(directory: Path, call: Mapping[str, Any], largest: int = 4 << 20) -> None:
    line = json.dumps(call, separators=(",", ":")).encode() + b"\n"
    path = private_directory(directory) / NAMES[0]
    while True:
        with opened_log(path, os.O_RDWR | os.O_APPEND | os.O_CREAT) as descriptor:
            if os.pread(descriptor, 1, max(os.fstat(descriptor).st_size - 1, 0)) not in (b"", b"\n"):
                line = b"\n" + line  # the last one was torn by a full disk
            os.write(descriptor, line)
            found = os.fstat(descriptor)
            if found.st_nlink == 0:  # paused before the write for so long that the file is no longer kept
                continue
            if found.st_size > largest:
                _put_away(path, descriptor)
            return


@contextmanager
def opened_log(path: Path, flags: int) -> Iterator[int]:
    """A descriptor of a file that is the log's alone. A FIFO, a device or a link is an error, not a wait."""
    with opened(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC) as descriptor:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise UnsafePath(str(path), "it is not a regular file with one name")
        yield descriptor


def _subjects_of(data: Any) -> list[str]:
    """Its own keys and paths, and those of what it lists."""
    members = data if isinstance(data, dict) else {}
    listed = [item for value in members.values() if isinstance(value, list) for item in value if isinstance(item, dict)]
    named = [each[name] for each in (members, *listed[:20]) for name in _SUBJECTS if isinstance(each.get(name), str)]
    return [redact(name[:1000])[:200] for name in dict.fromkeys(named)]


def _put_away(path: Path, descriptor: int) -> None:
    """One process does it: a second one finds another file at the path, or none."""
    from .safety.flock import EXCLUSIVE, try_lock  # not at the top: few calls need it

    with suppress(FileNotFoundError):
        if try_lock(descriptor, EXCLUSIVE) and os.path.samestat(os.fstat(descriptor), path.stat()):
            path.replace(path.with_name(NAMES[1]))
