"""The report of a worker: the result of `task work`."""

from dataclasses import dataclass, field
from typing import Annotated

from ..kit.contract.response import UNTRUSTED, Effect


@dataclass(frozen=True)
class FailedAttempt:
    """One attempt whose command failed."""

    id: str
    attempts: int
    """How often the task had been claimed by then."""

    exit_status: int
    tail: Annotated[str, UNTRUSTED]
    """The end of what the command wrote."""

    output_bytes: int | None
    """How many bytes the command wrote. None if `tail` has all of them."""

    log: str | None
    """The file with all of its output. None if it wrote nothing."""


@dataclass(frozen=True)
class WorkReport:
    """What a worker did."""

    queue: str
    finished: int = 0
    given_back: int = 0
    lost: int = 0
    """Claims that ended before their commands did. The commands were killed."""

    failures: list[FailedAttempt] = field(default_factory=list)
    left: int | None = None
    """The tasks of the queue that are neither done nor failed.

    None after an interruption: an interrupted worker does not count them.
    """

    failed: int | None = None
    """The tasks of the queue that have failed since the worker started.

    These include tasks that others had claimed. Only a worker with --until-empty counts them. None
    if the store was unreachable then.
    """

    effect: Effect = "unchanged"
    logs: str | None = None
    """The directory with the output of the commands. None if no command wrote anything."""

    @property
    def truncated(self) -> bool:
        """Whether the output of a command is not shown whole. Its log has all of it."""
        return any(failure.output_bytes is not None for failure in self.failures)

    def lines(self) -> list[str]:
        """Return a summary, a line for each failed attempt, and where the output is."""
        counts = [
            f"{self.finished} finished",
            f"{self.given_back} given back",
            f"{self.lost} lost",
        ]
        if self.left is not None:
            counts.append(f"{self.left} left")
        if self.failed:
            counts.append(f"{self.failed} failed")
        lines = [f"{self.queue}: {', '.join(counts)}"]
        for failure in self.failures:
            lines.append(f"  {failure.id}: exit code {failure.exit_status}: {failure.tail.strip()}")
        if self.logs is not None:
            lines.append(f"The output of the commands is in {self.logs}")
        return lines
