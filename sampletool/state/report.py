"""What a worker did, for its answer."""

from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from ..kit.contract.response import UNTRUSTED, Effect


class Failure(NamedTuple):
    """One attempt that went wrong, and the end of what it said."""

    id: str
    attempts: int
    exit_status: int
    tail: Annotated[str, UNTRUSTED]
    log: str | None = None


@dataclass
class Worked:
    """What a worker has done."""

    queue: str
    finished: int = 0
    given_back: int = 0
    lost: int = 0
    """Claims that ended before their command did; it was stopped, and its task is another worker's."""
    failures: list[Failure] = field(default_factory=list)
    left: int | None = None
    """Tasks of the queue that are neither done nor failed; not counted by a worker that was interrupted."""
    effect: Effect = "unchanged"
    logs: str | None = None
    """The directory with the output of every command."""

    def lines(self) -> list[str]:
        left = "" if self.left is None else f", {self.left} left"
        lines = [f"{self.queue}: {self.finished} finished, {self.given_back} given back, {self.lost} lost{left}"]
        lines += [f"  {one.id}: exit status {one.exit_status}: {one.tail.strip()}" for one in self.failures]
        return [*lines, f"What the commands wrote is in {self.logs}"] if self.logs else lines
