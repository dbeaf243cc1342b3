"""The schema of a tool's response, as short as it can be and still say what is in it.

The list of tools repeats the schema for every tool. So it names the first-level members of `data`,
with their types, and nothing that all tools share: the instructions of the server describe the
other members of a response. The whole schema is in the manifest.
"""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_UNTRUSTED = "x-untrusted"
"""The mark of a member that can contain text from other programs or people."""


def response_schema(data_schema: Schema) -> Schema:
    """Return the schema of a response whose `data` has this schema in the manifest."""
    return {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "data": _summarize_data(data_schema),
        },
        "required": ["ok", "data"],
    }


def _summarize_data(schema: Schema) -> Schema:
    """Return a short schema of `data`, which is null if a command fails."""
    if "anyOf" in schema:
        choices = [_summarize_object(choice) for choice in schema["anyOf"]]
        return {"anyOf": [*choices, {"type": "null"}]}
    return {**_summarize_object(schema), "type": ["object", "null"]}


def _summarize_object(schema: Schema) -> Schema:
    """Return a schema that names the members of an object, but not what is inside them."""
    properties = {}
    for name, member in schema.get("properties", {}).items():
        properties[name] = _summarize_member(member)
    return {"type": "object", "properties": properties}


def _summarize_member(schema: Schema) -> Schema:
    """Return the type of a member, and whether any text inside it is untrusted."""
    summary: Schema = {}
    if "enum" in schema:
        # All enums of the manifest are strings. Listing their values would cost tokens.
        summary["type"] = "string"
    elif "type" in schema:
        summary["type"] = schema["type"]
    if any(_UNTRUSTED in inner for inner in _with_inner_schemas(schema)):
        summary[_UNTRUSTED] = True
    return summary


def _with_inner_schemas(schema: Schema) -> Iterator[Schema]:
    """Yield a schema, and every schema inside it.

    Look only at the four keywords that the schemas of the manifest use to contain other schemas.
    """
    yield schema
    inner_schemas = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for keyword in ("items", "additionalProperties"):
        # `additionalProperties` can also be true or false.
        if isinstance(schema.get(keyword), dict):
            inner_schemas.append(schema[keyword])
    for inner_schema in inner_schemas:
        yield from _with_inner_schemas(inner_schema)
