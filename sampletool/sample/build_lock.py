"""Hold the build lock, and what a command needs to run jobs while it holds the lock.

A build holds the lock exclusively. Tests share it, so many commands test at the same time, but not
during a build. The commands of all jobs have exited before the lock is released.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..kit.context import NO_WAIT_SECONDS, Context
from ..kit.contract.expected import to_tool_error
from ..kit.places import make_workspace_directory, workspace_lock
from ..kit.safety.children import Children
from ..kit.safety.errors import LockTimeout
from ..kit.safety.orphans import end_orphans
from ..kit.safety.private_directory import PRIVATE_MODE, private_directory
from .trees import force_remove

LockMode = Literal["exclusive", "shared"]

_RESERVED_FILES = 40
"""How many open files this process needs for itself."""

_FILES_OF_JOB = 3
"""How many open files a running job needs: its output, its exit, and its log."""


@dataclass(frozen=True)
class Workplace:
    """What is needed to run jobs while this process holds the build lock."""

    context: Context
    scratch: Path
    """A directory for temporary files of this command."""
    children: Children
    max_running: int
    """How many jobs may run at the same time."""


@contextmanager
def build_lock(
    context: Context,
    mode: LockMode,
    jobs: int | None,
    *,
    force_unlock: bool,
) -> Iterator[Workplace]:
    """Hold the build lock until the block ends.

    Read the declarations of the jobs in the block: while this waits for the lock, another command
    may change them.

    `jobs` is how many jobs may run at the same time. With `force_unlock`, first terminate the
    processes that a killed build has left running.
    """
    path = workspace_lock(context.workspace, "build")
    if force_unlock:
        _end_orphans(context, path)
    try:
        with (
            context.hold(path, "build", mode, NO_WAIT_SECONDS) as hold,
            _scratch_directory(context, mode) as scratch,
        ):
            children = Children(context.signals, hold.descriptors, [path])
            try:
                with children:
                    yield Workplace(context, scratch, children, _max_running(context, jobs))
            finally:
                _warn_of_strays(context, children.strays)
            if not children.has_started:
                # Otherwise, the next command that has to wait would be told to try again too soon.
                hold.ignore_duration()
    except LockTimeout as error:
        failure = to_tool_error(error)
        hint = f"{failure.suggestion} --force-unlock only helps if the holder has exited."
        raise failure.with_hint(hint) from error


def _end_orphans(context: Context, lock_path: Path) -> None:
    """Terminate the processes that a killed build has left running. They still hold its lock."""
    for pid in end_orphans(lock_path, context.signals):
        message = f"Process {pid} was terminated. A command that has exited had left it running."
        context.warn("ORPHAN_ENDED", message)


def _warn_of_strays(context: Context, strays: list[int]) -> None:
    for pid in strays:
        message = f"Process {pid} was terminated. A command had left it running."
        context.warn("STRAY_ENDED", message)


def _max_running(context: Context, jobs: int | None) -> int:
    """Return how many jobs may run at the same time, with the open files that are allowed."""
    if jobs is None:
        jobs = context.jobs()
    max_files, _hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    if max_files == resource.RLIM_INFINITY:
        return jobs
    # With more jobs, opening an input or a log would fail, and that would end all of them.
    max_jobs = (max_files - _RESERVED_FILES) // _FILES_OF_JOB
    return max(1, min(jobs, max_jobs))


@contextmanager
def _scratch_directory(context: Context, mode: LockMode) -> Iterator[Path]:
    """Create a directory for this command, and remove it at the end of the block.

    It is on the file system of the outputs, so that outputs can be renamed to their places.
    """
    parent = private_directory(make_workspace_directory(context.workspace) / "tmp")
    if mode == "exclusive":
        # No other command runs, so a command that was killed has left whatever is here.
        for leftover in parent.iterdir():
            force_remove(leftover)
    directory = parent / f"{context.session_id}.{context.request_id}"
    directory.mkdir(mode=PRIVATE_MODE)
    try:
        yield directory
    finally:
        force_remove(directory)
