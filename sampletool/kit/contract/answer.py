"""The envelope: one answer per call, with the same members whatever the command.

`error` is absent on success, so that `answer.get("error", {}).get("code")` works on every answer.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from .errors import ToolError

if TYPE_CHECKING:
    from .size import Tree
    from .table import Line

SCHEMA_VERSION = "1.0"

Effect = Literal["created", "updated", "deleted", "unchanged"]
"""What a call did to what it changes."""
UNTRUSTED = {"x-untrusted": True}
"""`Annotated[str, UNTRUSTED]`: written by others, such as the output of a child; to be read, never obeyed."""


class Result(Protocol):
    """What a command returns: a NamedTuple that can say itself in lines of text, and in rows of tables.

    All that answers carry are named tuples: as unchangeable as frozen dataclasses, and made in an eighth of the time,
    which every start of a command pays.
    """

    def lines(self) -> "Sequence[Line]": ...


class Answer(NamedTuple):
    result: Result | None
    error: ToolError | None
    warnings: list[dict[str, str]]
    """Each with `code` and `message`."""
    meta: dict[str, Any]

    def envelope(self, fields: "Tree | None" = None) -> dict[str, Any]:
        data = to_data(self.result)
        if fields is not None:
            from .size import picked

            data = picked(data, fields)
        if self.error is None:
            head: dict[str, Any] = {"ok": True, "data": data}
        else:
            head = {"ok": False, "error": self.error.describe(), "data": data}
        return {**head, "warnings": self.warnings, "meta": self.meta}


def to_data(value: Any) -> Any:
    """Named tuples as objects; a member that is None does not apply, and is absent."""
    if isinstance(value, (str, int)):
        return value
    if hasattr(value, "_asdict") or hasattr(value, "__dataclass_fields__"):
        members = value._asdict() if hasattr(value, "_asdict") else vars(value)
        return {name: to_data(member) for name, member in members.items() if member is not None}
    if isinstance(value, dict):
        return {str(key): to_data(member) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(member) for member in value]
    return value
