"""Checks answers against the schemas that the manifest tells: as much of JSON Schema as these use.

Stricter than a caller has to be: a member that the schema does not name is a problem too.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from ..app import root_command
from ..commands.manifest import describe, find_commands
from ..contract.manifest import envelope_schema

_KINDS = {dict: "object", list: "array", str: "string", int: "integer", float: "number", bool: "boolean"}


def problems_of(answer: dict[str, Any]) -> list[str]:
    """Where an answer differs from what its command promises. One that is of no command has only an envelope."""
    found = _problems(answer, _schema_of(answer["meta"]["command"]), "answer")
    is_part = "fields" in answer["meta"]  # then any member of the data may be missing
    return [problem for problem in found if not (is_part and re.fullmatch(r"answer\.data\..* is missing", problem))]


@cache
def described() -> dict[str, dict[str, Any]]:
    """Of every command, by its name with dots."""
    return {name.replace(" ", "."): describe(name, command) for name, command in find_commands(root_command([]))}


@cache
def _schema_of(command: str) -> dict[str, Any]:
    return envelope_schema(described()[command]["data"] if command in described() else {})


def _problems(value: Any, schema: dict[str, Any], where: str) -> Iterator[str]:
    if choices := schema.get("anyOf"):
        found = [list(_problems(value, choice, where)) for choice in choices]
        if all(found):
            yield from max(found, key=lambda some: len(some[0].split()[0]))  # the choice that goes wrong deepest inside
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} is {value!r}, not one of {schema['enum']}"
    kinds, kind = schema.get("type", []), _KINDS.get(type(value), "null")
    if kinds and kind not in kinds and not (kind == "integer" and "number" in kinds):
        yield f"{where} is {value!r}, not {kinds}"
        return
    if "pattern" in schema and not re.search(schema["pattern"], value):
        yield f"{where} is {value!r}"
    if isinstance(value, dict):
        known = schema.get("properties", {})
        others = schema.get("additionalProperties", None if known else {})
        yield from (f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, member in value.items():
            inner = known.get(name, others)
            if inner is None:
                yield f"{where}.{name} is not in the schema"
            else:
                yield from _problems(member, inner, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, item in enumerate(value):
            yield from _problems(item, schema["items"], f"{where}[{number}]")
