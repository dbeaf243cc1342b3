"""The schema of a tool's response, as short as it can be and still say what is in it.

The list of tools repeats the schema for every tool. So it names the first-level members of `data`,
with their types, and nothing that all tools share: the instructions of the server describe the
other members of a response. The whole schema is in the manifest.
"""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_UNTRUSTED = "x-untrusted"


def response_schema(data: Schema) -> Schema:
    """Return the schema of a response with this `data`."""
    return {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "data": _shallow_data(data),
        },
        "required": ["ok", "data"],
    }


def _shallow_data(data: Schema) -> Schema:
    """Return the schema of `data`, which is null if a command fails."""
    if "anyOf" in data:
        return {"anyOf": [_shallow_object(choice) for choice in data["anyOf"]] + [{"type": "null"}]}
    return {**_shallow_object(data), "type": ["object", "null"]}


def _shallow_object(schema: Schema) -> Schema:
    properties = {}
    for name, member in schema.get("properties", {}).items():
        properties[name] = _shallow_member(member)
    return {"type": "object", "properties": properties}


def _shallow_member(schema: Schema) -> Schema:
    """Return the type of a member, and whether there is text from others anywhere in it."""
    shallow: Schema = {}
    if "enum" in schema:
        shallow["type"] = "string"
    elif "type" in schema:
        shallow["type"] = schema["type"]
    if any(_UNTRUSTED in inner for inner in _all_schemas(schema)):
        shallow[_UNTRUSTED] = True
    return shallow


def _all_schemas(schema: Schema) -> Iterator[Schema]:
    """Yield a schema, and every schema in it."""
    yield schema
    inner_schemas = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            inner_schemas.append(schema[name])
    for inner in inner_schemas:
        yield from _all_schemas(inner)
