"""Where a command runs jobs: the workspace while its lock is held, and what is told of the jobs meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from sampletool.commands._scratch import scratch, sweep
from sampletool.contract.answer import Result
from sampletool.contract.errors import ToolError
from sampletool.contract.exit_status import ExitStatus
from sampletool.contract.file_errors import from_os_error
from sampletool.contract.lock_held import Holder, LockHeld
from sampletool.progress import Progress
from sampletool.safety.children import Children
from sampletool.safety.orphans import end_orphans
from sampletool.safety.places import make_workspace_directory, private_directory
from sampletool.wiring import AT_ONCE, Wiring
from sampletool.work.job import Done
from sampletool.work.output_store import OutputStore
from sampletool.work.running import Floor

ENDS_WITH = (
    ExitStatus.PARTIAL,
    ExitStatus.PRECONDITION,
    ExitStatus.NOT_FOUND,
    ExitStatus.PERMISSION,
    ExitStatus.LOCK_HELD,
)
_AFTER_FORCE_SECONDS = 2.0


class Shop(NamedTuple):
    """A workspace while its lock is held."""

    store: OutputStore
    floor: Floor
    children: Children


@contextmanager
def opened(wiring: Wiring, mode: Literal["exclusive", "shared"], *, force_unlock: bool) -> Iterator[Shop]:
    """Holds the build lock; read what is to be run only then. Children end before the lock is released."""
    wiring.settings.must_be_right("jobs", "lock_timeout")
    path = private_directory(make_workspace_directory(wiring.workspace) / "locks") / "build.lock"
    for pid in end_orphans(path, wiring.signals) if force_unlock else ():
        wiring.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a holder that has ended, was ended.")
    patience = _AFTER_FORCE_SECONDS if force_unlock else AT_ONCE
    with _told_of_force(), wiring.hold(path, "build", mode, patience) as hold, scratch(wiring) as directory:
        if mode == "exclusive":
            sweep(wiring)
        store = OutputStore(wiring.workspace, wiring.signals.check, writable=mode == "exclusive")

        @cache
        def logs() -> Path:
            return private_directory(wiring.session_directory / f"logs-{wiring.request_id}")

        floor = Floor(wiring.workspace, directory, wiring.session_id, logs, store.version_of)
        children = Children(wiring.signals, hold.descriptors, [path])
        try:
            with children:
                yield Shop(store, floor, children)
        finally:
            for pid in children.strays:
                wiring.warn("STRAY_ENDED", f"Process {pid}, which a command had left running, was ended.")


@contextmanager
def _told_of_force() -> Iterator[None]:
    try:
        yield
    except LockHeld as error:
        holder: Holder | None = error.context.get("holder")
        is_orphaned = holder is not None and holder.state == "orphaned"
        told = "ends them too" if is_orphaned else "only helps if its process is dead"
        error.suggestion = f"{error.suggestion.rstrip('.')}; --force-unlock {told}."
        raise


@contextmanager
def keeping(result: Result) -> Iterator[None]:
    """Whatever stops the block, its error tells what had been done."""
    try:
        yield
    except (ToolError, OSError) as error:
        stopped = from_os_error(error) if isinstance(error, OSError) else error
        stopped.data = result
        raise stopped from error.__cause__


@contextmanager
def telling(wiring: Wiring, kind: str, total: int) -> Iterator[Callable[[Done, int], None]]:
    """Tells of each job that is done: a line of JSON for --format jsonl, a bar on a terminal."""
    with Progress(wiring, wiring.command, total) as progress:

        def tell(job: Done, done: int) -> None:
            wiring.emit({"event": f"{kind}_done", kind: job, "done": done, "total": total})
            progress.show(done)

        yield tell
