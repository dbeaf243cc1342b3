"""A log into which each worker writes its name, for the scenarios about locks."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..scenario import History, Step

WORK = Step(name="work", event="os.write", file="log")


@dataclass(frozen=True)
class WorkLog:
    """The workers that have written to the log, in their order."""

    workers: Sequence[str]

    def __str__(self) -> str:
        if not self.workers:
            return "nobody worked"
        return f"{' '.join(self.workers)} worked"


def work(worker: str) -> None:
    """Write the name of this worker into the log."""
    log = os.open("log", os.O_APPEND | os.O_WRONLY)
    os.write(log, worker.encode())


def find_work_without_lock(history: History) -> Iterator[str]:
    """Yield a sentence for each worker that wrote to the log without holding the lock."""
    holders_before: Sequence[str] = ()
    for step in history.taken_steps:
        has_worked = step.state_before != step.state_after
        if has_worked and step.worker not in holders_before:
            yield f"{step.worker} worked without the lock."
        holders_before = step.lock_holders


def prepare(directory: Path) -> None:
    """Create an empty log."""
    (directory / "log").touch()


def read_state(directory: Path) -> WorkLog:
    """Return the workers that have written to the log."""
    text = (directory / "log").read_text()
    # The name of each worker is one letter.
    return WorkLog(workers=list(text))
