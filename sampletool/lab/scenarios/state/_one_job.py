"""One job that must be done once, for scenarios in which two workers compete for it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...scenario import History


@dataclass(frozen=True)
class JobDone:
    """The workers that have done the job. There should be only one."""

    workers: Sequence[str]

    def __str__(self) -> str:
        if not self.workers:
            return "nobody"
        return " ".join(self.workers)


def do_job(worker: str) -> None:
    """Create a file that says that this worker has done the job."""
    Path(f"done-by-{worker}").touch()


def read_state(directory: Path) -> JobDone:
    """Return the workers that have done the job."""
    names = sorted(path.name for path in directory.glob("done-by-*"))
    return JobDone([name.removeprefix("done-by-") for name in names])


def invariant(history: History) -> Iterator[str]:
    """At most one worker does the job, one has done it at the end, and no worker fails."""
    workers = history.state.workers
    if len(workers) > 1:
        yield f"the job was done by {' and '.join(workers)}."
    if history.is_finished and not workers:
        yield "no worker did the job."
    for worker in history.failed_workers:
        yield f"{worker} failed instead of finding no free job."
