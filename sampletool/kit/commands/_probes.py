"""Does this file system keep the promises that everything here is built on? Each probe tries it for real."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..safety.atomic_file import flush_directory, replace

_TAKE = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("got", flush=True)
sys.stdin.read()
"""


class Probe(NamedTuple):
    """One promise, tried in one place: a directory, or a store."""

    name: str
    where: str
    ok: bool
    detail: str | None = None


def probe_directory(directory: Path) -> list[Probe]:
    """Every probe, in a directory of its own that the caller removes."""
    probes = []
    for name, probe in _PROBES.items():
        try:
            problem = probe(directory)
        except (OSError, subprocess.SubprocessError) as error:
            problem = str(error)
        probes.append(Probe(name, str(directory.parent), problem is None, problem))
    return probes


def _excludes(directory: Path) -> str | None:
    with _taken_by_another(directory / "exclusion"), _taken_by_another(directory / "exclusion") as is_taken_again:
        return "two processes have one lock at a time" if is_taken_again else None


def _freed_by_kill(directory: Path) -> str | None:
    for _ in range(2):
        with _taken_by_another(directory / "killed") as is_taken:
            pass
    return None if is_taken else "the lock outlived its holder"


def _renames_over_open_file(directory: Path) -> str | None:
    path = directory / "renamed"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        replace(path, b"new")
        old, new = reader.read(), path.read_bytes()
    return None if (old, new) == (b"old", b"new") else f"an open reader saw {old!r}, a new one {new!r}"


def _links_without_replacing(directory: Path) -> str | None:
    for name in ("one", "two"):
        (directory / name).write_bytes(name.encode())
    try:
        os.link(directory / "one", directory / "two")
    except FileExistsError:
        return None
    return "link() replaced an existing file"


def _keeps_private(directory: Path) -> str | None:
    inner = directory / "private"
    inner.mkdir(mode=0o700)
    found = inner.stat()
    if found.st_uid == os.geteuid() and not found.st_mode & 0o077:
        return None
    return f"a private directory came out with mode {found.st_mode & 0o777:04o} and owner {found.st_uid}"


_PROBES: dict[str, Callable[[Path], str | None]] = {
    "lock excludes another process": _excludes,
    "lock is freed by kill -9": _freed_by_kill,
    "rename over an open file": _renames_over_open_file,
    "link never replaces": _links_without_replacing,
    "fsync of a directory": flush_directory,
    "private directories": _keeps_private,
}


@contextmanager
def _taken_by_another(path: Path) -> Iterator[bool]:
    """Whether another process gets a lock without waiting. It keeps it until the block ends, and is killed then."""
    argv, pipe = [sys.executable, "-I", "-S", "-c", _TAKE, str(path)], subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        yield process.stdout.readline() == b"got\n"
        process.kill()
