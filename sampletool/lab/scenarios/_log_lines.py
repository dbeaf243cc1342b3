"""The lines of a log, for the scenarios in which several workers write to one log."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class LogLines:
    """The lines of a log."""

    lines: Sequence[str]

    def __str__(self) -> str:
        if not self.lines:
            return "(empty)"
        return " / ".join(self.lines)
