"""Try on this machine what the tool relies on: locks, renames, fsync and private directories.

Each probe does the real thing in a scratch directory, which is removed again.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from ..contract.expected import EXPECTED, to_tool_error
from ..places import lock_paths, state_directory
from ..program import WORKSPACE_DIRECTORY, env_variable
from ..safety.atomic_file import create, flush_directory, replace
from ..safety.errors import SafetyError
from ..safety.lock import refuse_unsafe_lock_file
from ..safety.private_directory import check_private, private_directory
from ..safety.processes import can_see_processes

_LINKED_LOCKS = "lock files with several names"
_USABLE_LOCKS = "locks can be used"

_USE_A_LOCAL_DISK = (
    "Use a directory on a local disk. For the workspace, move it; "
    f"for the other places, set {env_variable('STATE_DIR')}, {env_variable('CONFIG_DIR')} "
    "or TMPDIR."
)
"""What to do if a file system cannot do what the tool needs. Many network file systems cannot."""

_MAX_LISTED = 10
"""How many locks with the same problem are listed. There can be hundreds."""

_TAKE_LOCK = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print("got", flush=True)
sys.stdin.read()
"""
"""A program that takes a lock without waiting, and holds it until its stdin is closed."""


@dataclass(frozen=True)
class Probe:
    """The result of one probe of one place: a directory, a file or a server."""

    name: str
    where: str
    ok: bool
    detail: str | None = None
    """What failed. After a success, it can be a remark."""
    required: bool = True
    """Whether the tool is unreliable here if the probe fails."""
    fix: str | None = None
    """What to do about a failure."""


def missing_guarantees() -> list[str]:
    """Return what the tool cannot guarantee, because this system does not offer what it needs."""
    missing = []
    if not can_see_processes():
        missing.append("to know who holds a lock, and to end the children of a killed command")
    if not hasattr(os, "listxattr"):
        missing.append("to keep the extended attributes of a file that is replaced")
    if sys.platform != "linux":
        missing.append("anything: the tests of the tool have never run on this system")
    return missing


def probe_directories(directories: list[Path]) -> list[Probe]:
    """Probe each directory: whether files can be created in it, and what its file system can do.

    A file system with several of the directories is probed once. If a directory does not exist, its
    nearest parent is probed.
    """
    probes: list[Probe] = []
    probed_devices: set[int] = set()
    for directory in directories:
        existing = next(path for path in (directory, *directory.parents) if path.is_dir())
        try:
            with _scratch_directory(existing) as scratch:
                probes.append(Probe("writable", str(directory), True))
                device = existing.stat().st_dev
                if device not in probed_devices:
                    probed_devices.add(device)
                    probes += probe_directory(scratch)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            detail = f"nothing can be written in {existing}: {reason}"
            fix = f"Make it writable: `chmod u+rwx {shlex.quote(str(existing))}`."
            probes.append(Probe("writable", str(directory), False, detail, fix=fix))
    return probes


@contextmanager
def _scratch_directory(parent: Path) -> Iterator[Path]:
    with TemporaryDirectory(
        prefix=".doctor-",
        dir=parent,
        ignore_cleanup_errors=True,
    ) as scratch:
        yield Path(scratch)


def probe_directory(directory: Path) -> list[Probe]:
    """Run every probe of a file system in this directory. The caller removes it."""
    probes = []
    for name, find_problem in _PROBES.items():
        try:
            problem = find_problem(directory)
        except EXPECTED as error:
            problem = to_tool_error(error).message
        except subprocess.SubprocessError as error:
            problem = str(error)
        fix = None if problem is None else _USE_A_LOCAL_DISK
        probes.append(Probe(name, str(directory.parent), problem is None, problem, fix=fix))
    return probes


def probe_lock_files(lock_paths: Iterable[Path]) -> list[Probe]:
    """Return a remark about each directory that has lock files with several names.

    Such a file is not a failure, because the next command that uses the lock replaces it.
    """
    linked_by_directory: dict[Path, list[str]] = {}
    for path in lock_paths:
        # Another command may remove the file, with the session it belongs to.
        with suppress(FileNotFoundError):
            if path.lstat().st_nlink > 1:
                linked_by_directory.setdefault(path.parent, []).append(path.name)

    probes = []
    for directory, names in linked_by_directory.items():
        detail = (
            f"{_first_names(names)}: the file has another name, too. Probably the directory was "
            "copied with hard links (cp -al). Until the next use of such a lock, which gives this "
            "directory a file of its own, commands here wait for holders in the other directory."
        )
        probe = Probe(
            _LINKED_LOCKS,
            where=str(directory),
            ok=True,
            detail=detail,
            required=False,
        )
        probes.append(probe)
    return _first_probes(probes)


def _first_names(names: list[str]) -> str:
    """Return the first ten names, and the number of the others."""
    if len(names) <= _MAX_LISTED:
        return ", ".join(names)
    listed = ", ".join(names[:_MAX_LISTED])
    return f"{listed} and {len(names) - _MAX_LISTED} more"


def _first_probes(probes: list[Probe]) -> list[Probe]:
    """Return the first ten of several probes with the same name, and one for all the others."""
    if len(probes) <= _MAX_LISTED:
        return probes
    first = probes[0]
    others = f"{len(probes) - _MAX_LISTED} other places"
    return [*probes[:_MAX_LISTED], Probe(first.name, others, first.ok)]


def probe_lock_places(workspace: Path | None) -> list[Probe]:
    """Return a failed probe for each directory of locks and each lock file that commands refuse.

    Without it, a machine would be healthy on which every command that writes fails.
    """
    directories = [state_directory() / "locks"]
    if workspace is not None:
        own_directory = workspace / WORKSPACE_DIRECTORY
        directories += [own_directory, own_directory / "locks"]

    probes = []
    for directory in directories:
        # A command creates a directory that is missing. A parent that is no directory is reported
        # by its own probe, or by the probe of writing.
        with suppress(FileNotFoundError, NotADirectoryError):
            probes += _refusals(directory, partial(check_private, directory))
    for path in lock_paths(workspace):
        # Another command may remove the file, with the session it belongs to.
        with suppress(FileNotFoundError):
            probes += _refusals(path, partial(refuse_unsafe_lock_file, path, path.lstat()))
    return _first_probes(probes)


def _refusals(path: Path, check: Callable[[], object]) -> list[Probe]:
    """Return a failed probe if the check refuses the path, and nothing otherwise."""
    try:
        check()
    except SafetyError as error:
        refused = to_tool_error(error)
        return [Probe(_USABLE_LOCKS, str(path), False, refused.message, fix=refused.suggestion)]
    return []


def _find_lock_shared_by_two(directory: Path) -> str | None:
    lock_path = directory / "lock"
    with _taken_by_another_process(lock_path), _taken_by_another_process(lock_path) as is_taken:
        if is_taken:
            return "two processes have one lock at the same time"
    return None


def _find_lock_that_outlives_its_holder(directory: Path) -> str | None:
    # The probe before this one used the same lock, and killed its holder.
    with _taken_by_another_process(directory / "lock") as is_taken:
        if not is_taken:
            return "the lock outlived its holder"
    return None


def _find_problem_of_rename(directory: Path) -> str | None:
    path = directory / "renamed"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        replace(path, b"new")
        old = reader.read()
        new = path.read_bytes()
    if (old, new) != (b"old", b"new"):
        return f"an open reader saw {old!r}, and a new one {new!r}"
    return None


def _find_problem_of_link(directory: Path) -> str | None:
    path = directory / "linked"
    create(path, b"old")
    with suppress(FileExistsError):
        create(path, b"new")
    if path.read_bytes() != b"old":
        return "link() replaced an existing file"
    return None


def _find_problem_of_flush(directory: Path) -> str | None:
    # It raises NotFlushed.
    flush_directory(directory)
    return None


def _find_problem_of_private_directory(directory: Path) -> str | None:
    mode = private_directory(directory / "private").stat().st_mode & 0o777
    if mode & 0o077:
        return f"a private directory was created with mode {mode:04o}"
    return None


_PROBES: dict[str, Callable[[Path], str | None]] = {
    "lock excludes another process": _find_lock_shared_by_two,
    "lock is freed by kill -9": _find_lock_that_outlives_its_holder,
    "rename over an open file": _find_problem_of_rename,
    "link never replaces": _find_problem_of_link,
    "fsync of a directory": _find_problem_of_flush,
    "private directories": _find_problem_of_private_directory,
}
"""Functions that return the problem that they have found, or None."""


@contextmanager
def _taken_by_another_process(lock_path: Path) -> Iterator[bool]:
    """Yield whether another process gets the lock without waiting.

    It holds the lock until the block ends, and is killed then.
    """
    with subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _TAKE_LOCK, str(lock_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline() == b"got\n"
        process.kill()
