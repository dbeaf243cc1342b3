"""sampletool/mcp/response_schema.py: a short schema that every response fits."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from sampletool.mcp.response_schema import response_schema

DATA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "effect": {"enum": ["created", "unchanged"]},
        "tasks": {
            "type": "array",
            "items": {"type": "object", "properties": {"body": {"x-untrusted": True}}},
        },
        "by_name": {"type": "object", "additionalProperties": {"x-untrusted": True}},
        "count": {"type": "integer"},
    },
    "required": ["effect"],
}


def test_the_first_level_of_the_data_is_named_with_types() -> None:
    data = response_schema(DATA)["properties"]["data"]

    assert data == {
        "type": ["object", "null"],
        "properties": {
            "effect": {"type": "string"},
            "tasks": {"type": "array", "x-untrusted": True},
            "by_name": {"type": "object", "x-untrusted": True},
            "count": {"type": "integer"},
        },
    }


def test_each_form_that_the_data_may_have_is_an_object_and_may_be_null() -> None:
    schema = {"anyOf": [{"properties": {"a": {"type": "integer"}}}, {}]}

    assert response_schema(schema)["properties"]["data"] == {
        "anyOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}},
            {"type": "object", "properties": {}},
            {"type": "null"},
        ]
    }


@pytest.mark.parametrize(
    "member",
    [
        {"x-untrusted": True},
        {"items": {"x-untrusted": True}},
        {"additionalProperties": {"properties": {"a": {"x-untrusted": True}}}},
        {"anyOf": [{"type": "null"}, {"items": {"x-untrusted": True}}]},
    ],
)
def test_a_member_is_marked_if_any_text_inside_it_is_untrusted(member: dict[str, Any]) -> None:
    schema = response_schema({"properties": {"marked": member, "other": {"items": {}}}})

    members = schema["properties"]["data"]["properties"]
    assert members["marked"]["x-untrusted"] is True
    assert "x-untrusted" not in members["other"]


@pytest.mark.parametrize("data", [None, {"effect": "created", "tasks": []}])
@pytest.mark.parametrize("schema", [DATA, {"anyOf": [DATA, {"type": "object"}]}])
def test_the_data_of_a_command_that_failed_may_be_null(
    data: dict[str, Any] | None,
    schema: dict[str, Any],
) -> None:
    jsonschema.validate({"ok": data is not None, "data": data}, response_schema(schema))


def test_a_member_of_another_type_does_not_fit() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"ok": True, "data": {"count": "1"}}, response_schema(DATA))
