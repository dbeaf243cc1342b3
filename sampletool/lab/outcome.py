"""How a function of a learner's file ended: its exit code, and what went wrong."""

from dataclasses import dataclass
from typing import Any

FAILED = 1
"""The exit code after an error in prepare() or worker()."""
BROKEN = 3
"""The exit code if the invariant does not hold."""
REFUSED = 4
"""The exit code of a process whose function does something that cannot be stepped."""
CANNOT_JUDGE = 5
"""The exit code after an error in invariant() or always()."""
BAD_FILE = 6
"""The exit code if the file cannot be loaded, or has no worker() or invariant()."""


@dataclass(frozen=True)
class Outcome:
    """How a function ended."""

    exit_code: int = 0
    reason: str = ""
    """What went wrong."""

    def as_json(self) -> dict[str, Any]:
        """Return it for the process that asked for it."""
        return {"exit_code": self.exit_code, "reason": self.reason}
