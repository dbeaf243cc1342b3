"""Find what a test leaves behind: open descriptors, processes, threads and temporary files.

The fixture `leaks_nothing` of the plugin takes a snapshot before each test and one after it, when all other fixtures
of the test have been torn down. What is only in the second snapshot is a leak, and the test fails with its name.

What is meant to outlive a test is known by one of these rules:

* a fixture with a wider scope made it: the plugin wraps the setup of such a fixture in `outlives_the_test`;
* a test needed it first, and made it in a `with outlives_the_test():` block, for example the database servers;
* it belongs to the fork server of this worker, which `running_fork_server` names.

A process that has been told to exit and a thread whose work is done may need a moment, so they get one. A child
that has exited does not: whoever started it has to wait for it.

On a system without /proc only threads and files are compared.
"""

import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sampletool.kit.program import PROGRAM
from sampletool.kit.safety.lock_record import READERS
from sampletool.kit.safety.processes import can_see, pids
from sampletool.kit.testing.forked import running_fork_server

EXIT_SECONDS = 20.0
"""How long a process or a thread may take to end after its test. A busy machine needs a few seconds."""
_LOOK_AGAIN_SECONDS = 0.01

_MAX_ENTRIES = 3000
"""Where the search for temporary files gives up: 5 ms. Only tests that copy the whole project have more."""

_HAS_PROC = can_see()

_LITTER = re.compile(
    r"\..+\.[0-9]+-[0-9a-f]{8}\.tmp"  # atomic_file.py
    r"|\.removed-[0-9a-f]{16}"  # session.py
    r"|\.doctor-.*"  # doctor.py
    r"|\.kit\.(?:new|old)"  # upgrade.py
    r"|(?:.+\.)?[0-9a-f]{16}(?:\.fork)?"  # what a part names by the id of its request: a scratch directory, a copy
)
"""Names of what our programs make and remove in the same call."""

_INNER_RUN = "pytest-of-"
"""How the name of a directory begins in which pytest keeps its last three runs. That run judges its own tests."""

_STAYS = (
    f"{PROGRAM}-{os.geteuid()}",  # the sessions of the tool: they outlive its calls (see places.py)
    _INNER_RUN,
)
"""How names begin that may stay in the temporary directory."""

_NOT_SEARCHED = {".git", ".hypothesis", ".venv", "__pycache__", "node_modules"}
"""Directories that only other programs write to."""

STARTS_PROCESS = {
    "os.fork",
    "os.forkpty",
    "os.posix_spawn",
    "os.system",
    "fork_server.start",
    "subprocess.Popen",
}
"""Audit events after which there may be a process that is not our child."""

MAKES_TEMPORARY = {"tempfile.mkdtemp", "tempfile.mkstemp"}


@dataclass(frozen=True)
class Snapshot:
    """What this process has open and running."""

    descriptors: frozenset[tuple[int, str]] = frozenset()
    """Number and target: a number that was closed and used again is another descriptor."""
    processes: frozenset[int] = frozenset()
    """Children, and the processes that a fork server has started for us."""
    threads: frozenset[int] = frozenset()

    def without(self, other: "Snapshot") -> "Snapshot":
        return Snapshot(
            descriptors=self.descriptors - other.descriptors,
            processes=self.processes - other.processes,
            threads=self.threads - other.threads,
        )

    def with_all_of(self, other: "Snapshot") -> "Snapshot":
        return Snapshot(
            descriptors=self.descriptors | other.descriptors,
            processes=self.processes | other.processes,
            threads=self.threads | other.threads,
        )


@dataclass
class _Noticed:
    """What the audit hook has seen during the test that runs now."""

    pids_before_start: frozenset[int] | None = None
    """The processes that there were when the test started its first one. None if it has not started any."""
    temporary_paths: list[str] = field(default_factory=list)
    lasting: Snapshot = field(default_factory=Snapshot)


_noticed = _Noticed()


def notice(event: str, args: tuple[Any, ...]) -> None:
    """Remember an audit event that `find_leaks` needs: called for each event of STARTS_PROCESS and MAKES_TEMPORARY."""
    if event in MAKES_TEMPORARY:
        _noticed.temporary_paths.append(os.fsdecode(args[0]))
    elif _noticed.pids_before_start is None:
        _noticed.pids_before_start = frozenset(pids())


def begin_test() -> Snapshot:
    """Return what is there before the test, and forget what belonged to the test before it."""
    _noticed.pids_before_start = None
    _noticed.temporary_paths.clear()
    _noticed.lasting = Snapshot()
    return take_snapshot()


@contextmanager
def outlives_the_test() -> Iterator[None]:
    """Expect what the block makes to be there after the test, too."""
    before = take_snapshot()
    temporary_paths = [*_noticed.temporary_paths]
    try:
        yield
    finally:
        made = take_snapshot().without(before)
        _noticed.lasting = _noticed.lasting.with_all_of(made)
        _noticed.temporary_paths = temporary_paths


def take_snapshot() -> Snapshot:
    if not _HAS_PROC:
        native_ids = [thread.native_id for thread in threading.enumerate()]
        return Snapshot(threads=frozenset(number for number in native_ids if number is not None))
    threads = [int(name) for name in _names_in("/proc/self/task")]
    return Snapshot(
        descriptors=frozenset(_open_descriptors()),
        processes=frozenset(_own_processes()),
        threads=frozenset(threads),
    )


def find_leaks(before: Snapshot, directory: Path, *, may_leave_litter: bool = False) -> list[str]:
    """Return a sentence for each thing that the test with this directory has left, after waiting for what is ending."""
    deadline = time.monotonic() + EXIT_SECONDS
    while True:
        left = take_snapshot().without(before).without(_noticed.lasting).without(_fork_server_of_run())
        orphans = _orphans_of(directory, left)
        is_ending = bool(left.threads) or any(map(_may_go_away, {*left.processes, *orphans}))
        if not is_ending or time.monotonic() > deadline:
            break
        time.sleep(_LOOK_AGAIN_SECONDS)
    sentences = [*_say_descriptors(left), *_say_processes(left, orphans), *_say_threads(left)]
    if not may_leave_litter:
        sentences += [f"file {path} is still there" for path in sorted(_left_files(directory))]
    return sentences


def _open_descriptors() -> Iterator[tuple[int, str]]:
    for name in _names_in("/proc/self/fd"):
        with suppress(OSError):  # the descriptor of the listing itself is closed now
            yield int(name), os.readlink(f"/proc/self/fd/{name}")


def _own_processes() -> Iterator[int]:
    for child in _children_of("self"):
        yield child
        if _is_fork_server(child):
            yield from _children_of(str(child))


def _children_of(process: str) -> Iterator[int]:
    """Return the children of all threads of a process, also those that have exited and nobody has waited for."""
    for thread in _names_in(f"/proc/{process}/task"):
        with suppress(OSError):
            for pid in _read(f"/proc/{process}/task/{thread}/children").split():
                yield int(pid)


def _orphans_of(directory: Path, left: Snapshot) -> set[int]:
    """Return the processes with the test's HOME that are not our children: their parent has exited.

    To read the environment of 150 processes takes 2.5 ms. So it is done only after a test that has started a process,
    and only for those that were not there before. A process that a fork server has forked shows the environment of
    that server: it is found as a child of the server.
    """
    if _noticed.pids_before_start is None:
        return set()
    home = f"HOME={directory}/".encode()
    found = set()
    for pid in set(pids()) - _noticed.pids_before_start:
        with suppress(OSError):
            if home in _read(f"/proc/{pid}/environ") and not _is_fork_server(pid):
                found.add(pid)
    return found - left.processes - {os.getpid()}


def _fork_server_of_run() -> Snapshot:
    """Return what belongs to the fork server that all tests of this worker share, if one of them has needed it."""
    fork_server = running_fork_server()
    if fork_server is None:
        return Snapshot()
    with suppress(OSError):
        target = os.readlink(f"/proc/self/fd/{fork_server.fileno()}")
        return Snapshot(descriptors=frozenset({(fork_server.fileno(), target)}), processes=frozenset({fork_server.pid}))
    return Snapshot()


def _left_files(directory: Path) -> set[str]:
    """Return the temporary files that the test has left.

    These are files with a name that our programs use for temporary ones, anywhere below the test's directory, all
    that is in its TMPDIR, and what this process has made with `tempfile` elsewhere. The real temporary directory is
    not listed: other programs use it at the same time.
    """
    found = set()
    for path in _noticed.temporary_paths:
        if not path.startswith(f"{directory}/") and os.path.lexists(path):
            found.add(path)
    temporary_directory = f"{directory}/home/tmpdir"
    for name in _names_in(temporary_directory):
        if not name.startswith(_STAYS):
            found.add(f"{temporary_directory}/{name}")
    found.update(_litter_below(str(directory)))
    return found


def _litter_below(directory: str) -> Iterator[str]:
    waiting = [directory]
    entries = 0
    while waiting and entries < _MAX_ENTRIES:
        current = waiting.pop()
        is_readers = current.endswith(READERS)
        with suppress(OSError), os.scandir(current) as scan:
            for entry in scan:
                entries += 1
                if is_readers or _LITTER.fullmatch(entry.name):
                    yield entry.path
                elif _is_searched(entry):
                    waiting.append(entry.path)


def _is_searched(entry: os.DirEntry[str]) -> bool:
    if entry.name in _NOT_SEARCHED or entry.name.startswith(_INNER_RUN):
        return False
    return entry.is_dir(follow_symlinks=False)


def _say_descriptors(left: Snapshot) -> Iterator[str]:
    for number, target in sorted(left.descriptors):
        yield f"descriptor {number} is still open: {target}"


def _say_processes(left: Snapshot, orphans: set[int]) -> Iterator[str]:
    for pid in sorted(left.processes):
        if _is_zombie(pid):
            yield f"child process {pid} has exited, and nobody has waited for it"
        else:
            yield f"child process {pid} is still running: {_command_line(pid)}"
    for pid in sorted(orphans):
        yield f"process {pid}, whose parent has exited, is still running: {_command_line(pid)}"


def _say_threads(left: Snapshot) -> Iterator[str]:
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    for number in sorted(left.threads):
        yield f"thread {number} is still running: {names.get(number, 'started with _thread')}"


def _may_go_away(pid: int) -> bool:
    """Whether the process may end without us: it runs, or it has exited and a fork server is about to wait for it."""
    state, parent = _state_and_parent(pid)
    return state not in ("Z", "X") or parent != os.getpid()


def _is_zombie(pid: int) -> bool:
    state, _ = _state_and_parent(pid)
    return state in ("Z", "X")


def _state_and_parent(pid: int) -> tuple[str, int]:
    """Return what /proc shows; an empty state and 0 for a process that has just gone away."""
    with suppress(OSError):
        fields = _read(f"/proc/{pid}/stat").decode(errors="replace").rpartition(")")[2].split()
        return fields[0], int(fields[1])
    return "", 0


def _is_fork_server(pid: int) -> bool:
    with suppress(OSError):
        return b"fork_server" in _read(f"/proc/{pid}/cmdline")
    return False


def _command_line(pid: int) -> str:
    with suppress(OSError):
        return _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode(errors="replace").strip()
    return "it has just exited"


def _read(path: str) -> bytes:
    """Return a file of /proc. Path.read_bytes takes three times as long."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        blocks = []
        while block := os.read(descriptor, 65536):
            blocks.append(block)
        return b"".join(blocks)
    finally:
        os.close(descriptor)


def _names_in(directory: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(directory)
    return []
