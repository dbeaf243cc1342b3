"""What a versioned value and a counter do if only one caller uses them.

A model is a function from a state and a call to the next state. It returns `Impossible` if the call
cannot have its response in that state. The response of a call that was killed is not known, so it
agrees with every state.

A call that was refused changes nothing, but its error shows what the state was: VERSION_CONFLICT
names the actual version. So a refused call counts as a read.
"""

import json
from dataclasses import dataclass, replace

from .linearizable import Impossible
from .operation import Operation, whole


@dataclass(frozen=True)
class Cell:
    """The state of one versioned value."""

    text: str | None = None
    """The value as JSON, or None if there is no value."""
    version: int | None = 0
    """0 if there is no value, and None if its version is not known.

    The version is not known after a `set` that has no response, until somebody reads the value.
    """
    highest: int = 0
    """The highest version that is known to have been used. Every new version must be higher."""

    def __str__(self) -> str:
        if self.text is None:
            return f"no value; the highest version was {self.highest}"
        if self.version is None:
            return f"value {self.text}, a version above {self.highest}"
        return f"value {self.text}, version {self.version}"


class ValueModel:
    """A value whose version grows with each change and is never used twice."""

    def initial(self) -> Cell:
        """Return a cell without a value."""
        return Cell()

    def step(self, cell: Cell, operation: Operation) -> Cell | Impossible:
        """Return the cell after the call, or why the call cannot have its response here."""
        if operation.refusal == "KEY_NOT_FOUND":
            return _with_version(cell, 0)
        if operation.refusal == "VERSION_CONFLICT":
            return self._conflict(cell, operation)
        if operation.verb == "get":
            return self._get(cell, operation)
        expected = operation.arguments["if_version"]
        if expected is not None:
            found = _with_version(cell, whole(expected))
            if isinstance(found, Impossible):
                return found
            cell = found
        if operation.verb == "set":
            return self._set(cell, operation)
        return self._unset(cell, operation)

    def _get(self, cell: Cell, operation: Operation) -> Cell | Impossible:
        text = json.dumps(operation.response["value"])
        if text != cell.text:
            return Impossible(f"it returned {text}, but there is: {cell}")
        return _with_version(cell, whole(operation.response["version"]))

    def _conflict(self, cell: Cell, operation: Operation) -> Cell | Impossible:
        actual = whole(operation.response["actual"])
        if actual == operation.arguments["if_version"]:
            return Impossible(f"it was refused although version {actual} is the one it expected")
        return _with_version(cell, actual)

    def _set(self, cell: Cell, operation: Operation) -> Cell | Impossible:
        text = json.dumps(operation.arguments["value"])
        if operation.may_have_happened:
            return Cell(text=text, version=None, highest=cell.highest)
        version = whole(operation.response["version"])
        if version <= cell.highest:
            reason = f"it got version {version}, but versions up to {cell.highest} have been used"
            return Impossible(reason)
        return Cell(text=text, version=version, highest=version)

    def _unset(self, cell: Cell, operation: Operation) -> Cell | Impossible:
        if operation.succeeded:
            # The response is the version of the value that was removed, or 0 if there was none.
            found = _with_version(cell, whole(operation.response["version"]))
            if isinstance(found, Impossible):
                return found
            cell = found
        return Cell(text=None, version=0, highest=cell.highest)


def _with_version(cell: Cell, version: int) -> Cell | Impossible:
    """Return the cell if it can have this version, and remember the version if it was not known."""
    if cell.version is None and version > cell.highest:
        return replace(cell, version=version, highest=version)
    if cell.version != version:
        return Impossible(f"its response requires version {version}, but there is: {cell}")
    return cell


class CounterModel:
    """A number to which callers add. Each addition returns the sum that it made."""

    def initial(self) -> int:
        """Return 0, the value of a counter that nobody added to."""
        return 0

    def step(self, value: int, operation: Operation) -> int | Impossible:
        """Return the sum after the call, or why the call cannot have its response here."""
        if operation.verb == "count":
            value_after = value
        else:
            value_after = value + whole(operation.arguments["amount"])
        if operation.may_have_happened:
            return value_after
        returned = operation.response["value"]
        if returned != value_after:
            return Impossible(f"it returned {returned}, but the sum would be {value_after}")
        return value_after
