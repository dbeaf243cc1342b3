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
    assert response_schema(DATA) == {
        "type": "object",
        "properties": {
            "ok": {"type": "boolean"},
            "data": {
                "type": ["object", "null"],
                "properties": {
                    "effect": {"type": "string"},
                    "tasks": {"type": "array", "x-untrusted": True},
                    "by_name": {"type": "object", "x-untrusted": True},
                    "count": {"type": "integer"},
                },
            },
        },
        "required": ["ok", "data"],
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
    ("member", "summary"),
    [
        ({"x-untrusted": True}, {"x-untrusted": True}),
        ({"items": {"x-untrusted": True}}, {"x-untrusted": True}),
        (
            {"additionalProperties": {"properties": {"a": {"x-untrusted": True}}}},
            {"x-untrusted": True},
        ),
        (
            {"anyOf": [{"type": "null"}, {"items": {"x-untrusted": True}}]},
            {"x-untrusted": True},
        ),
        (
            {"type": "object", "properties": {"a": {}, "b": {"x-untrusted": True}}},
            {"type": "object", "x-untrusted": True},
        ),
        ({"items": {}, "additionalProperties": False}, {}),
        ({"enum": ["a"], "x-untrusted": True}, {"type": "string", "x-untrusted": True}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
    ],
)
def test_a_member_has_its_type_and_a_mark_if_any_text_inside_it_is_untrusted(
    member: dict[str, Any],
    summary: dict[str, Any],
) -> None:
    schema = response_schema({"properties": {"member": member, "other": {"items": {}}}})

    assert schema["properties"]["data"] == {
        "type": ["object", "null"],
        "properties": {"member": summary, "other": {}},
    }


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
