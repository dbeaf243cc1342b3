"""Find what a test leaves behind: open descriptors, processes, threads and temporary files.

The fixture `leaks_nothing` of the plugin takes a snapshot before each test and one after it, when
all other fixtures of the test have been torn down. If something is only in the second snapshot,
the test fails, and the message names it.

Three things may outlive a test:

* what a fixture with a wider scope creates: the plugin wraps the setup of such a fixture in
  `outlives_the_test`;
* what a test creates inside `with outlives_the_test():`, for example a database server that the
  whole run shares;
* the fork server of this pytest worker, which `running_fork_server` returns.

A process that was told to exit, and a thread that has finished its work, may need a moment to
disappear, so the second snapshot is repeated for a while. A child that has exited does not
disappear on its own: the process that started it has to wait for it.

Terms:

* a *descriptor* is a number together with the file that it refers to;
* an *orphan* is a process of the test whose parent has exited, so it is not our child any more;
* *litter* is a temporary file that our programs create and delete within one command.

On a system without /proc, only threads and files are compared.
"""

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..program import PROGRAM
from ..safety.lock_record import READERS
from ..safety.processes import can_see_processes, pids
from .forked import running_fork_server

EXIT_SECONDS = 20.0
"""How long a process or a thread may take to end after its test. A busy machine needs seconds."""

_SECONDS_BETWEEN_SNAPSHOTS = 0.01

_MAX_SEARCHED_ENTRIES = 3000
"""Where the search for litter stops, after 5 ms. Only copies of the project are larger."""

_HAS_PROC = can_see_processes()

_LITTER_NAME = re.compile(
    r"\..+\.[0-9]+-[0-9a-f]{8}\.tmp"  # atomic_file.py
    r"|\.removed-[0-9a-f]{16}"  # session.py
    r"|\.doctor-.*"  # doctor.py
    r"|\.kit\.(?:new|old)"  # upgrade.py
    r"|(?:.+\.)?[0-9a-f]{16}(?:\.fork)?"  # a scratch directory, named after the id of a request
)

_INNER_PYTEST_PREFIX = "pytest-of-"
"""Pytest keeps the directories of its last three runs. A run inside a test judges its own tests."""

_ALLOWED_TEMPORARY_PREFIXES = (
    f"{PROGRAM}-{os.geteuid()}",  # sessions of the tool, which outlive its commands (see places.py)
    _INNER_PYTEST_PREFIX,
)

_NOT_SEARCHED = {
    ".git",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".venv",
    "__pycache__",
    "node_modules",
}
"""Directories that only other programs write to."""

STARTS_PROCESS = {
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.system",
    "fork_server.start",
    "subprocess.Popen",
}
"""Audit events after which there may be an orphan."""

CREATES_TEMPORARY_PATH = {"tempfile.mkdtemp", "tempfile.mkstemp"}
"""Audit events of Python's tempfile module. Their argument is the path."""


@dataclass(frozen=True)
class Snapshot:
    """What this process has open and running at one moment."""

    descriptors: frozenset[tuple[int, str]] = frozenset()
    """Each with its number and its target, because a closed number is soon used again."""
    processes: frozenset[int] = frozenset()
    """Our children, and the children that a fork server started for us."""
    threads: frozenset[int] = frozenset()

    def minus(self, other: "Snapshot") -> "Snapshot":
        """Return what is in this snapshot and not in the other one."""
        return Snapshot(
            descriptors=self.descriptors - other.descriptors,
            processes=self.processes - other.processes,
            threads=self.threads - other.threads,
        )

    def plus(self, other: "Snapshot") -> "Snapshot":
        """Return what is in either snapshot."""
        return Snapshot(
            descriptors=self.descriptors | other.descriptors,
            processes=self.processes | other.processes,
            threads=self.threads | other.threads,
        )


@dataclass
class _CurrentTest:
    """What is known about the test that runs now, besides the snapshots."""

    pids_before_first_start: frozenset[int] | None = None
    """All processes of the machine when the test first started one. None if it has started none."""
    temporary_paths: list[str] = field(default_factory=list)
    """What the test created with Python's tempfile module."""
    allowed: Snapshot = field(default_factory=Snapshot)
    """What may outlive the test."""


_current_test = _CurrentTest()


def notice(event: str, args: tuple[Any, ...]) -> None:
    """Remember an audit event of STARTS_PROCESS or CREATES_TEMPORARY_PATH for `find_leaks`."""
    if event in CREATES_TEMPORARY_PATH:
        _current_test.temporary_paths.append(os.fsdecode(args[0]))
    elif _current_test.pids_before_first_start is None:
        _current_test.pids_before_first_start = frozenset(pids())


def begin_test() -> Snapshot:
    """Forget the previous test, and return the snapshot before the new one."""
    global _current_test
    _current_test = _CurrentTest()
    return take_snapshot()


@contextmanager
def outlives_the_test() -> Iterator[None]:
    """Allow everything that the block creates to be there after the test."""
    test = _current_test
    before = take_snapshot()
    path_count = len(test.temporary_paths)
    try:
        yield
    finally:
        created = take_snapshot().minus(before)
        test.allowed = test.allowed.plus(created)
        # The temporary paths of the block may stay as well.
        del test.temporary_paths[path_count:]


def take_snapshot() -> Snapshot:
    """Return what this process has open and running now."""
    if not _HAS_PROC:
        return Snapshot(threads=frozenset(_native_ids_of_threads()))
    # Unlike threading.enumerate(), /proc also lists threads that C code or _thread started.
    threads = [int(name) for name in _names_in("/proc/self/task")]
    return Snapshot(
        descriptors=frozenset(_open_descriptors()),
        processes=frozenset(_own_processes()),
        threads=frozenset(threads),
    )


def find_leaks(before: Snapshot, directory: Path, *, may_leave_litter: bool = False) -> list[str]:
    """Return a sentence about each thing that the test left behind.

    `directory` is the test's own directory. Wait up to EXIT_SECONDS for what is about to end.
    """
    deadline = time.monotonic() + EXIT_SECONDS
    while True:
        leaked = _leaked_since(before)
        orphans = _orphans_of(directory)
        if not _may_still_end(leaked, orphans) or time.monotonic() > deadline:
            break
        time.sleep(_SECONDS_BETWEEN_SNAPSHOTS)

    sentences = [
        *_describe_descriptors(leaked),
        *_describe_processes(leaked),
        *_describe_orphans(orphans),
        *_describe_threads(leaked),
    ]
    if not may_leave_litter:
        for path in sorted(_left_files(directory)):
            sentences.append(f"file {path} is still there")
    return sentences


def kill_leaked_processes(before: Snapshot, directory: Path) -> None:
    """Kill the processes that the test left, so that they do not outlive the run."""
    for pid in _leaked_since(before).processes | _orphans_of(directory):
        # The process may have exited since it was listed.
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _leaked_since(before: Snapshot) -> Snapshot:
    """Return what is here now, was not here before the test, and must not outlive it."""
    now = take_snapshot()
    return now.minus(before).minus(_current_test.allowed).minus(_fork_server_of_worker())


def _may_still_end(leaked: Snapshot, orphans: set[int]) -> bool:
    """Return whether a part of what was left could disappear on its own."""
    if leaked.threads:
        return True
    return any(_may_disappear(pid) for pid in {*leaked.processes, *orphans})


def _may_disappear(pid: int) -> bool:
    """Return False for a child of ours that has exited: it stays until we wait for it.

    A child of a fork server that has exited disappears as soon as the fork server waits for it.
    """
    state, parent = _state_and_parent(pid)
    has_exited = state in ("Z", "X")
    return not has_exited or parent != os.getpid()


# Descriptors, processes and threads


def _open_descriptors() -> Iterator[tuple[int, str]]:
    """Yield the number and the target of each open descriptor."""
    for name in _names_in("/proc/self/fd"):
        # The descriptor that was used to list the directory is closed by now.
        with suppress(OSError):
            yield int(name), os.readlink(f"/proc/self/fd/{name}")


def _native_ids_of_threads() -> Iterator[int]:
    for thread in threading.enumerate():
        # A thread has no native id until it has started.
        if thread.native_id is not None:
            yield thread.native_id


def _own_processes() -> Iterator[int]:
    """Yield our children, and the children of those that are fork servers."""
    for child in _children_of("self"):
        yield child
        if _is_fork_server(child):
            yield from _children_of(str(child))


def _children_of(process: str) -> Iterator[int]:
    """Yield the children of a process, including those that exited and were not waited for.

    `process` is a pid or "self". Each thread of a process has a list of children of its own.
    """
    for thread in _names_in(f"/proc/{process}/task"):
        with suppress(OSError):
            for pid in _read(f"/proc/{process}/task/{thread}/children").split():
                yield int(pid)


def _orphans_of(directory: Path) -> set[int]:
    """Return the processes that belong to the test and are not our children any more.

    They are recognized by the HOME in their environment. A process that was forked has the
    environment of its fork server in /proc, so the HOME of our fork server counts as well.

    Reading the environment of 150 processes takes 2.5 ms. So this looks only at processes that
    appeared after the test first started one.
    """
    if _current_test.pids_before_first_start is None:
        return set()
    homes = [f"HOME={directory}/".encode()]
    fork_server = running_fork_server()
    if fork_server is not None:
        homes.append(f"HOME={fork_server.env['HOME']}\0".encode())
    known = {os.getpid(), *_current_test.pids_before_first_start, *_own_processes()}
    orphans = set()
    for pid in set(pids()) - known:
        # The process may have exited since it was listed.
        with suppress(OSError):
            environment = _read(f"/proc/{pid}/environ")
            if any(home in environment for home in homes):
                orphans.add(pid)
    return orphans


def _fork_server_of_worker() -> Snapshot:
    """Return the process and the socket of the fork server that the tests of this worker share."""
    fork_server = running_fork_server()
    if fork_server is None:
        return Snapshot()
    number = fork_server.fileno()
    try:
        target = os.readlink(f"/proc/self/fd/{number}")
    except OSError:  # there is no /proc
        return Snapshot()
    return Snapshot(
        descriptors=frozenset({(number, target)}),
        processes=frozenset({fork_server.pid}),
    )


# Files


def _left_files(directory: Path) -> set[str]:
    """Return the temporary files that the test left behind.

    These are: litter anywhere below the test's directory, everything in the TMPDIR of the test,
    and what this process created elsewhere with Python's tempfile module. The real temporary
    directory is not listed, because other programs use it at the same time.
    """
    left = set(_litter_below(str(directory)))
    temporary_directory = f"{directory}/home/tmpdir"
    for name in _names_in(temporary_directory):
        if not name.startswith(_ALLOWED_TEMPORARY_PREFIXES):
            left.add(f"{temporary_directory}/{name}")
    for path in _current_test.temporary_paths:
        is_elsewhere = not path.startswith(f"{directory}/")
        if is_elsewhere and os.path.lexists(path):
            left.add(path)
    return left


def _litter_below(top: str) -> Iterator[str]:
    """Yield the paths of litter in a directory and in the directories below it."""
    waiting = [top]
    searched_entries = 0
    while waiting and searched_entries < _MAX_SEARCHED_ENTRIES:
        directory = waiting.pop()
        # A lock that readers share has a directory with a file for each of them. A reader
        # deletes its file when it releases the lock.
        holds_reader_files = directory.endswith(READERS)
        # A directory may be unreadable on purpose.
        with suppress(OSError), os.scandir(directory) as entries:
            for entry in entries:
                searched_entries += 1
                if holds_reader_files or _LITTER_NAME.fullmatch(entry.name):
                    yield entry.path
                elif _is_searched(entry):
                    waiting.append(entry.path)


def _is_searched(entry: os.DirEntry[str]) -> bool:
    """Return whether the entry is a directory in which litter is looked for."""
    if entry.name in _NOT_SEARCHED or entry.name.startswith(_INNER_PYTEST_PREFIX):
        return False
    return entry.is_dir(follow_symlinks=False)


# Sentences


def _describe_descriptors(leaked: Snapshot) -> Iterator[str]:
    for number, target in sorted(leaked.descriptors):
        yield f"descriptor {number} is still open: {target}"


def _describe_processes(leaked: Snapshot) -> Iterator[str]:
    for pid in sorted(leaked.processes):
        state, _ = _state_and_parent(pid)
        if state in ("Z", "X"):
            yield f"child process {pid} has exited, and nobody has waited for it"
        else:
            yield f"child process {pid} is still running: {_command_line(pid)}"


def _describe_orphans(orphans: set[int]) -> Iterator[str]:
    for pid in sorted(orphans):
        yield f"process {pid}, whose parent has exited, is still running: {_command_line(pid)}"


def _describe_threads(leaked: Snapshot) -> Iterator[str]:
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    for native_id in sorted(leaked.threads):
        # A thread that was not started by the threading module has no name.
        name = names.get(native_id, "started with _thread")
        yield f"thread {native_id} is still running: {name}"


# Access to /proc


def _state_and_parent(pid: int) -> tuple[str, int]:
    """Return the state letter and the parent's pid, or "" and 0 for a process that is gone."""
    try:
        stat = _read(f"/proc/{pid}/stat").decode(errors="replace")
    except OSError:
        return "", 0
    # The name of the program is in parentheses, and may contain spaces and parentheses.
    _, _, after_name = stat.rpartition(")")
    state, parent, *_ = after_name.split()
    return state, int(parent)


def _is_fork_server(pid: int) -> bool:
    try:
        return b"fork_server" in _read(f"/proc/{pid}/cmdline")
    except OSError:
        return False


def _command_line(pid: int) -> str:
    if _is_fork_server(pid):
        # A forked process has the command line of its server. The server itself is never a leak.
        return "started by the fork server (see sampletool/kit/testing/forked.py)"
    try:
        arguments = _read(f"/proc/{pid}/cmdline")
    except OSError:
        return "it has just exited"
    return arguments.replace(b"\0", b" ").decode(errors="replace").strip()


def _read(path: str) -> bytes:
    """Return the content of a file in /proc. Path.read_bytes() takes three times as long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        blocks = []
        while block := os.read(descriptor, 65536):
            blocks.append(block)
        return b"".join(blocks)
    finally:
        os.close(descriptor)


def _names_in(directory: str) -> list[str]:
    """Return the names in a directory, or nothing if it cannot be listed."""
    try:
        return os.listdir(directory)
    except OSError:
        return []
