"""An answer that costs its reader no more than it has to: only the fields that are asked for, and 64 KiB at most.

Cut are lists at an item, objects at a member and texts at a character: whatever is larger than a limit, which is the
largest that leaves 64 KiB. What is cut is named in a warning.
"""

import json
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from .answer import LARGEST_BYTES
from .errors import Mistake, did_you_mean
from .text import quoted

_ROOM_BYTES = LARGEST_BYTES - 1500
"""There is a warning to add."""
_LEAST_BYTES = 64
"""What a member of an object counts at the most: few large ones are cut inside, of many small ones the last go."""

Tree = dict[str, Any]
"""Names of fields, each with those in it; an empty name stands for all that is there."""


def read_fields(text: str, schema: dict[str, Any]) -> tuple[Tree, list[Mistake]]:
    """`a,b.c` as a tree; and every name that the schema does not have."""
    tree: Tree = {}
    mistakes = []
    for path in text.split(","):
        inner, fields, above = schema, tree, "the data"
        for name in path.split("."):
            known = _members(inner)
            if known is not None and name not in known:
                hint = did_you_mean(name, list(known)) or (f"There are {', '.join(known)}." if known else "")
                problem = f"{above} has no field {quoted(name)}"
                mistakes.append(Mistake("--fields", "UNKNOWN_FIELD", problem, name, hint or None))
            inner, fields, above = (known or {}).get(name, {}), fields.setdefault(name, {}), name
        fields[""] = {}
    return tree, mistakes


def _members(schema: dict[str, Any]) -> dict[str, Any] | None:
    """What can be named in data of this schema, or in its items; None if that is anything."""
    if "items" in schema:
        return _members(schema["items"])
    if "anyOf" in schema:
        choices = [_members(choice) for choice in schema["anyOf"]]
        names = dict.fromkeys(name for choice in choices for name in choice or {})
        merged = {name: {"anyOf": [choice[name] for choice in choices if choice and name in choice]} for name in names}
        return None if None in choices else merged
    is_scalar = "enum" in schema or schema.get("type") not in (None, "object")
    return {} if is_scalar else schema.get("properties")


def picked(value: Any, fields: Tree) -> Any:
    """Only these fields of an object, and of each in a list."""
    if "" in fields:
        return value
    if isinstance(value, list):
        return [picked(item, fields) for item in value]
    if isinstance(value, dict):
        return {name: picked(member, fields[name]) for name, member in value.items() if name in fields}
    return value


def shortened(envelope: dict[str, Any], cursor_after: Callable[[int], str] | None) -> dict[str, Any]:
    """The same in 64 KiB; and how to get the rest, which for a page is the next one."""
    over = bisect_right(range(LARGEST_BYTES), _ROOM_BYTES, key=lambda most: _size(_fitted(envelope, most, "", {})))
    cut: dict[str, tuple[int, int]] = {}
    small: dict[str, Any] = _fitted(envelope, max(over - 1, 0), "", cut)
    ways, more = "take some members with --fields, or all of it with --full.", {}
    for where, (kept, _) in cut.items():
        if cursor_after and where.count(".") == 2 and where.startswith(".data.") and where.endswith("[]"):
            more = {"next_cursor": cursor_after(kept)}
            ways = f"go on with --after and meta.next_cursor, {ways}"
    places = [(ascii(where)[2:-1], *counts) for where, counts in [*cut.items()][:5]]
    said = ", ".join(f"{where[:100]} ({kept} of {total})" for where, kept, total in places)
    notice = {"code": "TRUNCATED", "message": f"The answer is cut to 64 KiB at {said}: {ways}"}
    meta = {**small["meta"], **more, "truncated": True}
    return {**small, "warnings": [*small["warnings"], notice], "meta": meta}


def _fitted(value: Any, most: int, where: str, cut: dict[str, tuple[int, int]]) -> Any:
    """What is left if no text has more characters than this, and no list and no object more bytes."""
    if isinstance(value, str) and len(value) > most:
        cut[where] = most, len(value)
        return f"{value[:most]}…"
    if where == ".meta" or not isinstance(value, (list, dict)):
        return value
    is_list, left, room = isinstance(value, list), most, _ROOM_BYTES
    kept: dict[Any, Any] = {}
    for name, member in enumerate(value) if isinstance(value, list) else value.items():
        inner: dict[str, tuple[int, int]] = {}
        small = _fitted(member, most, f"{where}[{name}]" if is_list else f"{where}.{name}", inner)
        size = _size(small)
        left -= size if is_list else _size(name) + min(size, _LEAST_BYTES)
        if left < 0 and (kept if is_list else where.count(".") > 1):  # the members of the data itself always stay
            cut[f"{where}[]" if is_list else f"{where}{{}}"] = len(kept), len(value)
            break
        kept[name] = small
        cut |= inner
        if (room := room - size) < 0:  # too large already, whatever follows
            break
    return [*kept.values()] if is_list else kept


def _size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), default=str))
