"""The log of calls: one file for all processes, one line for each call, one write for each line.

The kernel puts each write of an appending descriptor at the end, whole, so writers need no lock. A file that has grown
is put away under a lock; a line that is written to it afterwards is kept with it. Names and paths are logged, never
values. Not flushed to the disk: kill -9 loses no line, a power cut may lose the last ones.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ..contract.answer import Answer, Effect, to_data
from .places import private_directory

_NAME, _BEFORE = "calls.jsonl", "calls.before.jsonl"
"""The file that is written to, and the one before it. Older ones are not kept."""
_LARGEST = 4 << 20
_SUBJECTS = ("key", "name", "id", "queue", "lock", "path", "output")
"""The members of an answer that say what a call was about."""


class Call(NamedTuple):
    at: str
    command: str
    exit_code: int
    duration_ms: int
    request_id: str
    cwd: str | None = None
    session_id: str | None = None
    trace_id: str | None = None
    code: str | None = None
    """Of its error."""
    effect: Effect | None = None
    dry_run: bool | None = None
    about: tuple[str, ...] = ()
    """Keys, names and paths."""


def call_of(answer: Answer) -> Call:
    meta, data = answer.meta, to_data(answer.result)
    code = answer.error.code if answer.error else None
    if answer.error:
        data = {"did": data, **answer.error.describe()["context"]}
    effect = data.get("effect") if isinstance(data, dict) else None
    known = {name: meta[name] for name in Call._fields if name in meta}
    return Call(at=meta["timestamp"], code=code, effect=effect, about=tuple(_subjects_of(data)), **known)


def append(directory: Path, call: Call, largest: int = _LARGEST) -> None:
    line = json.dumps(to_data(call), separators=(",", ":")).encode() + b"\n"
    path = private_directory(directory) / _NAME
    while True:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, line)
            found = os.fstat(descriptor)
            if found.st_nlink == 0:  # paused before the write for so long that the file is no longer kept
                continue
            if found.st_size > largest:
                _put_away(path, descriptor)
            return
        finally:
            os.close(descriptor)


def _subjects_of(data: Any) -> list[str]:
    """Its own keys and paths, and those of what it lists."""
    members = data if isinstance(data, dict) else {}
    listed = [item for value in members.values() if isinstance(value, list) for item in value if isinstance(item, dict)]
    named = [each[name] for each in (members, *listed[:20]) for name in _SUBJECTS if isinstance(each.get(name), str)]
    return [name[:200] for name in dict.fromkeys(named)]


def read_calls(directory: Path) -> Iterator[Call]:
    """The newest first. What is no line of ours is passed over."""
    for path in (directory / _NAME, directory / _BEFORE):
        for line in reversed(path.read_bytes().splitlines() if path.is_file() else []):
            with suppress(ValueError, TypeError):
                yield Call(**json.loads(line))


def _put_away(path: Path, descriptor: int) -> None:
    """One process does it: a second one finds another file at the path."""
    from .flock import EXCLUSIVE, try_lock  # not at the top: few calls need it

    if try_lock(descriptor, EXCLUSIVE) and os.path.samestat(os.fstat(descriptor), path.stat()):
        path.replace(path.with_name(_BEFORE))
