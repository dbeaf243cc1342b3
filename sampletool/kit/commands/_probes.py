"""Does this file system keep the promises that everything here is built on? Each probe tries it for real."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from ..safety.atomic_file import flush_directory, replace

_HOLDER = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    print("got", flush=True)
except BlockingIOError:
    print("refused", flush=True)
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
    path = directory / "exclusion"
    with _asking(path) as (_, first), _asking(path) as (_, second):
        is_kept = (first, second) == ("got", "refused")
        return None if is_kept else f"two processes asked for one lock and were told {first!r} and {second!r}"


def _freed_by_kill(directory: Path) -> str | None:
    path = directory / "killed"
    with _asking(path) as (process, _):
        process.send_signal(signal.SIGKILL)
        process.wait()
    with _asking(path) as (_, answer):
        return None if answer == "got" else "the lock outlived its holder"


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
def _asking(path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Another process that asks for a lock, and its answer; it keeps the lock until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None
            yield process, process.stdout.readline().decode().strip()
        finally:
            process.kill()
