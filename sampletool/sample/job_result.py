"""Say what has become of each target or check, to programs and to people."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal

from ..kit.contract.response import UNTRUSTED
from ..kit.program import WORKSPACE_FILE
from .job import Kind

_SHOWN_LINES = 10
"""How many lines of its output are shown for a job that failed."""

Status = Literal[
    "built",
    "up_to_date",
    "stale",
    "skipped",
    "passed",
    "failed",
    "stopped",
    "not_started",
    "would_run",
]


@dataclass(frozen=True)
class JobResult:
    """What the response says about one target or check."""

    name: str
    status: Status
    reason: str | None = None
    """Why a target had to be built."""
    outputs: str | None = None
    """The directory of the outputs that were built."""
    note: str | None = None
    exit_status: int | None = None
    tail: Annotated[str | None, UNTRUSTED] = None
    """The end of what the command has printed."""
    output_bytes: int | None = None
    """How many bytes the command has printed, if `tail` has not all of them."""
    log: str | None = None
    """The file with everything that the command has printed."""
    log_missing_bytes: int | None = None
    """How much is missing in the middle of the log, because the command has printed too much."""

    def lines(self) -> list[str]:
        """Return the text that a person reads about this job."""
        if self.status == "failed":
            return self._lines_of_failure()
        line = f"{self.name}: {_in_words(self.status)}"
        if self.note is not None:
            return [f"{line} ({self.note})"]
        if self.reason is not None:
            return [f"{line} ({self.reason})"]
        return [line]

    def _lines_of_failure(self) -> list[str]:
        """Return why the job failed, the end of its output, and where all of the output is."""
        lines = [f"{self.name}: {self.note}"]
        if self.tail is not None:
            last_lines = self.tail.splitlines()[-_SHOWN_LINES:]
            lines += [f"    {line}" for line in last_lines]
        if self.log_missing_bytes is not None:
            lines.append(f"    output without {self.log_missing_bytes} bytes of it: {self.log}")
        elif self.log is not None:
            lines.append(f"    whole output: {self.log}")
        return lines

    @property
    def is_shortened(self) -> bool:
        """Whether the result has only the end of what the command has printed."""
        return self.output_bytes is not None

    @property
    def needs_attention(self) -> bool:
        """Whether a person should see this job at the end, although it was shown before."""
        return self.note is not None or self.status not in ("built", "up_to_date", "passed")


def result_lines(results: Iterable[JobResult], kind: Kind) -> list[str]:
    """Return the text that a person reads at the end: jobs that need attention, and a summary.

    The other jobs were shown while they ran. If a job failed, the error is the summary.
    """
    lines: list[str] = []
    counts: Counter[str] = Counter()
    for result in results:
        counts[_in_words(result.status)] += 1
        if result.needs_attention:
            lines += result.lines()
    if not counts:
        return [f"There are no {kind}s in {WORKSPACE_FILE}."]
    if "failed" in counts:
        return lines
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    return [*lines, f"{kind}s: {summary}"]


def _in_words(status: Status) -> str:
    """Return the status as people read it, such as "up to date"."""
    return status.replace("_", " ")
