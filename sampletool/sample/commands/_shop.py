"""Where a command runs jobs: the workspace while its lock is held, and what is told of the jobs meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from sampletool.kit.context import AT_ONCE, Context
from sampletool.kit.contract.answer import Result
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.contract.exit_status import ExitStatus
from sampletool.kit.contract.file_errors import from_os_error
from sampletool.kit.contract.lock_held import Holder, LockHeld
from sampletool.kit.safety.children import Children
from sampletool.kit.safety.orphans import end_orphans
from sampletool.kit.safety.places import make_workspace_directory, private_directory
from sampletool.kit.terminal import Progress
from sampletool.sample.commands._scratch import scratch, sweep
from sampletool.sample.job import Done
from sampletool.sample.output_store import OutputStore
from sampletool.sample.running import Floor

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
def opened(context: Context, mode: Literal["exclusive", "shared"], *, force_unlock: bool) -> Iterator[Shop]:
    """Holds the build lock; read what is to be run only then. Children end before the lock is released."""
    context.settings.must_be_right("jobs", "lock_timeout")
    path = private_directory(make_workspace_directory(context.workspace) / "locks") / "build.lock"
    for pid in end_orphans(path, context.signals) if force_unlock else ():
        context.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a holder that has ended, was ended.")
    patience = _AFTER_FORCE_SECONDS if force_unlock else AT_ONCE
    with _told_of_force(), context.hold(path, "build", mode, patience) as hold, scratch(context) as directory:
        if mode == "exclusive":
            sweep(context)
        store = OutputStore(context.workspace, context.signals.check, writable=mode == "exclusive")

        @cache
        def logs() -> Path:
            return private_directory(context.session_directory / f"logs-{context.request_id}")

        floor = Floor(context.workspace, directory, context.session_id, logs, store.version_of)
        children = Children(context.signals, hold.descriptors, [path])
        try:
            with children:
                yield Shop(store, floor, children)
        finally:
            for pid in children.strays:
                context.warn("STRAY_ENDED", f"Process {pid}, which a command had left running, was ended.")


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
def telling(context: Context, kind: str, total: int) -> Iterator[Callable[[Done, int], None]]:
    """Tells of each job that is done: a line of JSON for --format jsonl, a bar on a terminal."""
    with Progress(context, context.command, total) as progress:

        def tell(job: Done, done: int) -> None:
            context.emit({"event": f"{kind}_done", kind: job, "done": done, "total": total})
            progress.show(done)

        yield tell
