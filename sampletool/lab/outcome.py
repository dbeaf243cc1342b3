"""The outcome of a function of a learner's file: an exit code and a reason."""

from dataclasses import dataclass
from typing import Any

FAILED = 1
"""The exit code after an error in prepare() or worker()."""
BROKEN = 3
"""The exit code if the invariant does not hold."""
REFUSED = 4
"""The exit code of a process that was ended because it did something that cannot be stepped."""
CANNOT_JUDGE = 5
"""The exit code after an error in invariant() or always()."""
BAD_FILE = 6
"""The exit code if the file cannot be loaded, or has no worker() or invariant()."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a function."""

    exit_code: int = 0
    reason: str = ""
    """The reason for a failure, or an empty text."""

    def as_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object, for the process of the lab."""
        return {"exit_code": self.exit_code, "reason": self.reason}
