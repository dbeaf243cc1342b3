"""Can this machine keep the promises? Tried for real, in a scratch directory that is removed again."""

import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import typer

from ..context import Context
from ..contract.command_spec import CommandSpec
from ..contract.errors import ChecksFailed
from ..contract.expected import EXPECTED, to_tool_error
from ..contract.table import Line, Painted
from ..contract.text import GREEN, RED
from ..parts import offered
from ..places import all_locks, config_file, lock_paths, session_root, state_directory
from ..program import WORKSPACE_DIRECTORY
from ..safety.atomic_file import create, flush_directory, replace
from ..safety.errors import SafetyError
from ..safety.lock import refuse_unsafe_lock_file
from ..safety.private_directory import check_private, private_directory
from ..safety.processes import can_see_processes

spec = CommandSpec(effect="nothing", errors=(ChecksFailed,), reads=("machine",), examples=("doctor",))

_LINKED_LOCKS = "lock files with several names"
_USABLE_LOCKS = "locks can be used"
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


class Health(NamedTuple):
    healthy: bool
    probes: list[Probe]
    versions: dict[str, str]
    not_promised: list[str]
    """What rests on something that this system does not offer."""

    def lines(self) -> list[Line]:
        lines: list[Line] = []
        for where, probes in groupby(self.probes, lambda probe: probe.where):
            lines.append(where)
            for probe in probes:
                lines.append(("", Painted("ok  ", GREEN) if probe.ok else Painted("FAIL", RED), probe.name))
                lines += [f"        {probe.detail}"] if probe.detail else []
        lines += ["Not promised here:", *(("", said) for said in self.not_promised)] if self.not_promised else []
        return [*lines, "", *self.versions.items()]


def not_promised() -> list[str]:
    offered = {
        "to say for certain who holds a lock, and to end what a dead call left running": can_see_processes(),
        "to keep the extended attributes of a file that is replaced": hasattr(os, "listxattr"),
        "anything: no test has ever run on this system": sys.platform == "linux",
    }
    return [promise for promise, is_offered in offered.items() if not is_offered]


def probe_directories(directories: list[Path]) -> list[Probe]:
    """Is each writable; and every file system among them, once. One that is not there is tried at its parent."""
    probes: list[Probe] = []
    seen: set[int] = set()
    for wanted in directories:
        found = next(path for path in (wanted, *wanted.parents) if path.is_dir())
        try:
            with TemporaryDirectory(prefix=".doctor-", dir=found, ignore_cleanup_errors=True) as scratch:
                probes.append(Probe("writable", str(wanted), True))
                if (device := found.stat().st_dev) not in seen:
                    seen.add(device)
                    probes += probe_directory(Path(scratch))
        except OSError as error:
            problem = f"nothing can be written in {found}: {(error.strerror or str(error)).lower()}"
            probes.append(Probe("writable", str(wanted), False, problem))
    return probes


def probe_directory(directory: Path) -> list[Probe]:
    """Every probe, in a directory of its own that the caller removes."""
    probes = []
    for name, probe in _PROBES.items():
        try:
            problem = probe(directory)
        except EXPECTED as error:
            problem = to_tool_error(error).message
        except subprocess.SubprocessError as error:
            problem = str(error)
        probes.append(Probe(name, str(directory.parent), problem is None, problem))
    return probes


def probe_lock_files(lock_paths: Iterable[Path]) -> list[Probe]:
    """Return a probe for each directory that has lock files with several names.

    It is no failure, because the next command that uses such a lock replaces its file.
    """
    linked_by_directory: dict[Path, list[str]] = {}
    for path in lock_paths:
        # Another command may remove the file, with the session it belongs to.
        with suppress(FileNotFoundError):
            if path.lstat().st_nlink > 1:
                linked_by_directory.setdefault(path.parent, []).append(path.name)

    probes = []
    for directory, names in linked_by_directory.items():
        meaning = (
            f"{', '.join(names)}: there is another name for the same file, probably because the directory was copied "
            "with hard links (cp -al). Until the next use of such a lock, which gives this directory a file of its "
            "own, commands here wait for those that hold the lock in the other directory."
        )
        probes.append(Probe(_LINKED_LOCKS, str(directory), True, meaning))
    return probes


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
        # by its own probe, or by that of writing.
        with suppress(FileNotFoundError, NotADirectoryError):
            probes += _refusals(directory, partial(check_private, directory))
    for path in lock_paths(workspace):
        # Another command may remove the file, with the session it belongs to.
        with suppress(FileNotFoundError):
            probes += _refusals(path, partial(refuse_unsafe_lock_file, path, path.lstat()))
    return probes


def _refusals(path: Path, check: Callable[[], object]) -> list[Probe]:
    """Return a failed probe if the check refuses the path, and nothing otherwise."""
    try:
        check()
    except SafetyError as error:
        return [Probe(_USABLE_LOCKS, str(path), False, to_tool_error(error).message)]
    return []


def _excludes(directory: Path) -> str | None:
    with _taken_by_another(directory / "lock"), _taken_by_another(directory / "lock") as is_taken_again:
        return "two processes have one lock at a time" if is_taken_again else None


def _freed_by_kill(directory: Path) -> str | None:
    """The lock of the probe before, whose holder has been killed."""
    with _taken_by_another(directory / "lock") as is_taken:
        return None if is_taken else "the lock outlived its holder"


def _renames_over_open_file(directory: Path) -> str | None:
    path = directory / "renamed"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        replace(path, b"new")
        old, new = reader.read(), path.read_bytes()
    return None if (old, new) == (b"old", b"new") else f"an open reader saw {old!r}, a new one {new!r}"


def _links_without_replacing(directory: Path) -> str | None:
    path = directory / "linked"
    create(path, b"old")
    with suppress(FileExistsError):
        create(path, b"new")
    return None if path.read_bytes() == b"old" else "link() replaced an existing file"


def _keeps_private(directory: Path) -> str | None:
    mode = private_directory(directory / "private").stat().st_mode & 0o777
    return f"a private directory came out with mode {mode:04o}" if mode & 0o077 else None


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


def command(ctx: typer.Context) -> Health:
    """Check that this machine can keep the promises.

    Tried for real: writing, locks between processes, kill -9, rename, fsync, private directories, and what parts need.
    """
    context: Context = ctx.obj
    workspace = context.workspace_or_none
    places = [session_root().parent, config_file().parent, state_directory()]
    places += [workspace, workspace / WORKSPACE_DIRECTORY] if workspace else []
    if session_root().exists():
        private_directory(session_root())
    probes = probe_directories(places)
    probes += probe_lock_files(all_locks(workspace))
    probes += probe_lock_places(workspace)
    probes += (probe for part in offered("doctor") for probe in part.probe(context))
    versions = {"python": platform.python_version(), "system": f"{platform.system()} {platform.release()}"}
    versions |= {package: version(package) for package in ("typer", "filelock", "tomlkit", "platformdirs")}
    failed = [probe.name for probe in probes if not probe.ok]
    health = Health(not failed, probes, versions, not_promised())
    if failed:
        raise ChecksFailed(count=len(failed), failed=failed, data=health)
    return health
