"""A log into which each worker writes its letter, for the scenarios about locks."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..scenario import History, Step

WORK = Step("work", "os.write", "log")


def work(worker: str) -> None:
    """Write the letter of this worker into the log."""
    log = os.open("log", os.O_APPEND | os.O_WRONLY)
    os.write(log, worker.encode())


def intruders(history: History) -> Iterator[str]:
    """Yield a sentence for each worker that wrote to the log without holding the lock."""
    holders: Sequence[str] = ()
    for moment in history.moments:
        has_worked = str(moment.before) != str(moment.after)
        if has_worked and moment.worker not in holders:
            yield f"{moment.worker} worked without the lock."
        holders = moment.holders


def prepare(directory: Path) -> None:
    """Create an empty log."""
    (directory / "log").touch()


def look(directory: Path) -> str:
    """Return the workers in the log, in their order, as text."""
    letters = (directory / "log").read_text()
    if not letters:
        return "nobody worked"
    return f"{' '.join(letters)} worked"
