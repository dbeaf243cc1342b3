"""A broken promise: which one, how, and the calls that show it."""

from dataclasses import dataclass

from .operation import Operation, describe


@dataclass(frozen=True)
class Violation:
    """A promise that a history breaks."""

    promise: str
    """The name of the checker, such as `one-holder`."""
    explanation: str
    operations: tuple[Operation, ...] = ()
    """The calls that show it. They are printed in the order in which they began."""

    def __str__(self) -> str:
        """Return the explanation, and below it one line for each call."""
        if not self.operations:
            return f"{self.promise}: {self.explanation}"
        start_ns = min(operation.invoked_ns for operation in self.operations)
        return f"{self.promise}: {self.explanation}\n{describe(self.operations, start_ns)}"
