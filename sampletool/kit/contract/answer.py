"""The envelope: one answer per call, with the same members whatever the command.

`error` is absent on success, so that `answer.get("error", {}).get("code")` works on every answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Literal, Protocol

from .errors import ToolError
from .table import Line

SCHEMA_VERSION = "1.0"

Effect = Literal["created", "updated", "deleted", "unchanged"]
"""What a call did to what it changes."""


class Result(Protocol):
    """What a command returns: a frozen dataclass that can say itself in lines of text, and in rows of tables."""

    def lines(self) -> Sequence[Line]: ...


@dataclass(frozen=True)
class Notice:
    code: str
    message: str


@dataclass(frozen=True)
class Answer:
    result: Result | None
    error: ToolError | None
    warnings: list[Notice]
    meta: dict[str, Any] = field(default_factory=dict)

    def envelope(self) -> dict[str, Any]:
        data = to_data(self.result)
        if self.error is None:
            head: dict[str, Any] = {"ok": True, "data": data}
        else:
            head = {"ok": False, "error": self.error.describe(), "data": data}
        return {**head, "warnings": to_data(self.warnings), "meta": self.meta}


def to_data(value: Any) -> Any:
    """Dataclasses as objects; a member that is None does not apply, and is absent."""
    if isinstance(value, (str, int)):
        return value
    if is_dataclass(value):
        return {name: to_data(member) for name, member in vars(value).items() if member is not None}
    if isinstance(value, dict):
        return {str(key): to_data(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(member) for member in value]
    return value
