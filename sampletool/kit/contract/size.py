"""An answer that costs its reader no more than it has to: only the fields that are asked for, and 64 KiB at most.

Cut are lists at an item, objects at a member and texts at a character, the largest first; what is cut is named in a
warning.
"""

import json
from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate, islice
from typing import Any

from .answer import LARGEST_BYTES
from .errors import Mistake, did_you_mean
from .text import quoted

_ROOM_FOR_WARNING = 1500
_LONGEST_PLACE_BYTES = 200
_LEAST_BYTES = 64
"""A value that is no larger is never cut."""

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
        some = [choice for choice in choices if choice is not None]
        names = dict.fromkeys(name for choice in some for name in choice)
        merged = {name: {"anyOf": [choice[name] for choice in some if name in choice]} for name in names}
        return merged if len(some) == len(choices) else None
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
    cut: dict[str, tuple[int, int]] = {}
    small: dict[str, Any] = _fitted(envelope, LARGEST_BYTES - _ROOM_FOR_WARNING, "", cut)
    ways, more = "take some members with --fields, or all of it with --full.", {}
    for where, (kept, _) in cut.items():
        if cursor_after and where.count(".") == 2 and where.startswith(".data.") and where.endswith("[]"):
            more = {"next_cursor": cursor_after(kept)}
            ways = f"go on with --after and meta.next_cursor, {ways}"
    places = [(_fitted(where[1:], _LONGEST_PLACE_BYTES, "", {}), *counts) for where, counts in [*cut.items()][:5]]
    said = ", ".join(f"{where} ({kept} of {total})" for where, kept, total in places)
    notice = {"code": "TRUNCATED", "message": f"The answer is cut to 64 KiB at {said}: {ways}"}
    meta = {**small["meta"], **more, "truncated": True}
    return {**small, "warnings": [*small["warnings"], notice], "meta": meta}


def _fitted(value: Any, most: int, where: str, cut: dict[str, tuple[int, int]]) -> Any:
    """What has at most so many bytes of JSON, or _LEAST_BYTES of them."""
    if _size(value) <= max(most, _LEAST_BYTES):
        return value
    if isinstance(value, str):
        kept = bisect_right(range(1, most), most - len('"\\u2026"'), key=lambda end: _size(value[:end]) - 2)
        cut[where] = kept, len(value)
        return f"{value[:kept]}…"
    if isinstance(value, list):
        kept = sum(1 for size in accumulate(_size(item) + 1 for item in value) if size < most)
        first = value[:1] if most - 2 >= _LEAST_BYTES else []
        if len(value) > 1 or not first:
            cut[f"{where}[]"] = kept or len(first), len(value)
        return value[:kept] or [_fitted(item, most - 2, f"{where}[0]", cut) for item in first]
    if isinstance(value, dict):
        names = {name: _size(name) + 2 for name in value}
        least = accumulate(names[name] + min(_size(member), _LEAST_BYTES) for name, member in value.items())
        if (kept := sum(1 for size in least if size <= most - 2)) < len(value):
            cut[f"{where}{{}}"] = kept, len(value)
            names = dict(islice(names.items(), kept))
        left, small = most - 2 - sum(names.values()), {}
        for number, name in enumerate(sorted(names, key=lambda name: _size(value[name]))):
            small[name] = _fitted(value[name], left // (kept - number), f"{where}.{name}", cut)
            left -= _size(small[name])
        return {name: small[name] for name in names}
    return _fitted(str(value), most, where, cut)  # a number of many digits


def _size(value: Any) -> int:
    return len(json.dumps(value, separators=(",", ":"), default=str))
