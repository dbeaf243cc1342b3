"""One job that must be done once, for scenarios in which two workers compete for it."""

from collections.abc import Iterator
from pathlib import Path

from ...scenario import History


def do_it(worker: str) -> None:
    """Create a file that says that this worker has done the job."""
    Path(f"done-by-{worker}").touch()


def look(directory: Path) -> str:
    """Return the workers that have done the job as text."""
    workers = sorted(path.name[-1] for path in directory.glob("done-by-*"))
    if not workers:
        return "nobody"
    return " ".join(workers)


def invariant(history: History) -> Iterator[str]:
    """At most one worker does the job, one has done it at the end, and no worker fails."""
    workers = history.now.split()
    if len(workers) > 1:
        yield f"the job was done by {' and '.join(workers)}."
    if history.is_over and history.now == "nobody":
        yield "no worker did the job."
    for letter in history.failed:
        yield f"{letter} failed instead of finding no free job."
