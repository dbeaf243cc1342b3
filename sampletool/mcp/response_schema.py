"""The output schema of a tool, which is a short form of the schema in the manifest.

The list of tools contains the schema of every tool, and its length costs each agent tokens. So the
schema only contains the names and types of the outermost members of `data`. It leaves out what all
responses have in common, because the instructions of the server describe that.
"""

from collections.abc import Iterator
from typing import Any

Schema = dict[str, Any]

_UNTRUSTED = "x-untrusted"
"""The keyword for a member that can contain text from other programs or people."""


def response_schema(data_schema: Schema) -> Schema:
    """Return the output schema of a tool.

    `data_schema` is the schema of the command's `data`, from the manifest.
    """
    return {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "data": _summarize_data(data_schema),
        },
        "required": ["ok", "data"],
    }


def _summarize_data(schema: Schema) -> Schema:
    """Return the short schema of `data`. It allows null, too, for commands that fail."""
    if "anyOf" in schema:
        choices = [_summarize_object(choice) for choice in schema["anyOf"]]
        return {"anyOf": [*choices, {"type": "null"}]}
    return {**_summarize_object(schema), "type": ["object", "null"]}


def _summarize_object(schema: Schema) -> Schema:
    """Return the short schema of an object: the names and types of its members."""
    properties = {}
    for name, member in schema.get("properties", {}).items():
        properties[name] = _summarize_member(member)
    return {"type": "object", "properties": properties}


def _summarize_member(schema: Schema) -> Schema:
    """Return the short schema of a member: its type, and whether it contains untrusted text."""
    summary: Schema = {}
    if "enum" in schema:
        # Leave out the values, to save tokens. In the manifest, all enums are strings.
        summary["type"] = "string"
    elif "type" in schema:
        summary["type"] = schema["type"]
    if any(_UNTRUSTED in inner for inner in _with_inner_schemas(schema)):
        summary[_UNTRUSTED] = True
    return summary


def _with_inner_schemas(schema: Schema) -> Iterator[Schema]:
    """Yield a schema, and all schemas inside it.

    Other schemas are only looked for in the four keywords that the manifest uses for them.
    """
    yield schema
    inner_schemas = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for keyword in ("items", "additionalProperties"):
        # `additionalProperties` can also be true or false.
        if isinstance(schema.get(keyword), dict):
            inner_schemas.append(schema[keyword])
    for inner_schema in inner_schemas:
        yield from _with_inner_schemas(inner_schema)
