"""What `tool build` and `tool test` share: the workspace while its lock is held, and bringing targets up to date."""

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
from sampletool.contract.lock_held import LockHeld
from sampletool.domain.errors import BuildFailed
from sampletool.domain.workspace import Jobs, read_jobs
from sampletool.progress import Progress
from sampletool.safety.children import Children
from sampletool.safety.orphans import end_orphans
from sampletool.safety.parsed import remember
from sampletool.safety.places import WORKSPACE_FILE, make_workspace_directory, private_directory
from sampletool.safety.toml_file import read_toml, resolve
from sampletool.wiring import AT_ONCE, Wiring
from sampletool.work.build_plan import Planned, plan
from sampletool.work.building import Build, build_targets
from sampletool.work.job import Done
from sampletool.work.needs import with_needs
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

    jobs: Jobs
    store: OutputStore
    floor: Floor
    children: Children


def read_workspace(wiring: Wiring, *, alone: bool = False) -> Jobs:
    wiring.settings.must_be_right("jobs", "lock_timeout")
    text = read_toml(resolve(wiring.workspace / WORKSPACE_FILE))
    jobs = read_jobs(text.document)
    if alone:
        remember(text.path, text.text, text.document)
    return jobs


@contextmanager
def opened(wiring: Wiring, mode: Literal["exclusive", "shared"], *, force_unlock: bool) -> Iterator[Shop]:
    """Holds the build lock, and reads tool.toml only then. Children end before the lock is released."""
    wiring.settings.must_be_right("jobs", "lock_timeout")
    path = private_directory(make_workspace_directory(wiring.workspace) / "locks") / "build.lock"
    for pid in end_orphans(path, wiring.signals) if force_unlock else ():
        wiring.warn("ORPHAN_ENDED", f"Process {pid}, left behind by a holder that has ended, was ended.")
    patience = _AFTER_FORCE_SECONDS if force_unlock else AT_ONCE
    with _told_of_force(), wiring.hold(path, "build", mode, patience) as hold, scratch(wiring) as directory:
        if mode == "exclusive":
            sweep(wiring)
        jobs = read_workspace(wiring, alone=mode == "exclusive")
        store = OutputStore(wiring.workspace, wiring.signals.check, writable=mode == "exclusive")

        @cache
        def logs() -> Path:
            return private_directory(wiring.session_directory / f"logs-{wiring.request_id}")

        floor = Floor(wiring.workspace, directory, wiring.session_id, logs, store.version_of)
        children = Children(wiring.signals, hold.descriptors, [path])
        try:
            with children:
                yield Shop(jobs, store, floor, children)
        finally:
            for pid in children.strays:
                wiring.warn("STRAY_ENDED", f"Process {pid}, which a command had left running, was ended.")


@contextmanager
def _told_of_force() -> Iterator[None]:
    try:
        yield
    except LockHeld as error:
        error.suggestion = f"{error.suggestion.rstrip('.')}; --force-unlock only helps if its process is dead."
        raise


def build(wiring: Wiring, shop: Shop, names: list[str], result: Build) -> None:
    """Bring these targets, and what they need, up to date. The result tells how far it came, also if it is stopped."""
    try:
        with keeping(result):
            planned = plan_targets(wiring, shop.jobs, shop.store, names)
            with telling(wiring, "target", len(planned)) as tell:
                build_targets(planned, shop.store, shop.floor, shop.children, wiring.jobs(), result, tell)
            if result.effect == "updated":
                shop.store.prune()
    finally:
        shop.store.close()
    if result.failed:
        raise BuildFailed(result.failed, result)


def plan_targets(wiring: Wiring, jobs: Jobs, store: OutputStore, names: list[str]) -> dict[str, Planned]:
    return plan(wiring.workspace, with_needs(jobs.targets, names), store)


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
