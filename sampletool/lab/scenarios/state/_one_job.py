"""One job that has to be done once: of several scenarios in which two workers want it."""

from collections.abc import Iterator
from pathlib import Path

from ...scenario import History


def do_it(worker: str) -> None:
    Path(f"done-by-{worker}").touch()


def look(directory: Path) -> str:
    return " ".join(sorted(path.name[-1] for path in directory.glob("done-by-*"))) or "nobody"


def invariant(history: History) -> Iterator[str]:
    """The one job is done by one worker, never by two; by one at the end; and no worker fails."""
    if len(history.now.split()) > 1:
        yield f"the one job was done by {' and '.join(history.now.split())}."
    if history.is_over and history.now == "nobody":
        yield "the one job was done by nobody."
    for letter in history.failed:
        yield f"{letter} failed instead of finding that there is nothing to do."
