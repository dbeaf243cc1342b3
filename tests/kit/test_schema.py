"""sampletool/kit/testing/schema.py: a response that differs from its schema is noticed."""

from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from sampletool.kit.contract.manifest import envelope_schema
from sampletool.kit.testing.schema import described, problems_of
from sampletool.kit.testing.tool import Tool


@pytest.fixture
def response(tool: Tool) -> dict[str, Any]:
    """Return the response of a command whose data has members of many types."""
    return tool("config", "explain", "jobs").response


def test_a_response_that_fits_its_schema_has_no_problem(response: dict[str, Any]) -> None:
    assert problems_of(response) == []


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"key": None}, "$.data.key: None is not of type 'string'"),
        ({"source": "thin air"}, "$.data.source: 'thin air' is not one of ["),
        ({"more": 1}, "$.data.more: is not in the schema"),
        ({"sources": [{}]}, "$.data.sources[0].source: is missing"),
    ],
)
def test_a_wrong_member_of_the_data_is_named_by_its_path(
    response: dict[str, Any], changes: dict[str, Any], problem: str
) -> None:
    response["data"].update(changes)

    first_problem = next(iter(problems_of(response)), "none")
    assert first_problem.startswith(problem)


def test_each_problem_of_the_envelope_is_reported(response: dict[str, Any]) -> None:
    del response["warnings"]
    response["meta"].update({"exit_code": True, "mood": "good"})

    assert sorted(problems_of(response)) == [
        "$.meta.exit_code: True is not of type 'integer'",
        "$.meta.mood: is not in the schema",
        "$.warnings: is missing",
    ]


def test_a_code_that_has_not_the_form_of_codes_is_a_problem(tool: Tool) -> None:
    response = tool("config", "get", "nope").response
    response["error"]["code"] = "key not found"

    (problem,) = problems_of(response)

    assert problem.startswith("$.error.code: 'key not found' does not match ")


def test_of_several_schemas_the_one_that_fits_best_explains_the_problem(
    response: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
    numbers = {
        "type": "object",
        "properties": {"numbers": {"type": "array", "items": {"type": "integer"}}},
    }
    monkeypatch.setitem(described(), "one.of.two", {"data": {"anyOf": [text, numbers]}})
    response["meta"]["command"] = "one.of.two"
    response["data"] = {"numbers": [10, "ten"]}

    assert problems_of(response) == ["$.data.numbers[1]: 'ten' is not of type 'integer'"]


def test_selected_data_may_lack_members_but_must_not_have_others(tool: Tool) -> None:
    response = tool("config", "explain", "jobs", "--fields", "key").response
    assert response["data"].keys() == {"key"}
    assert problems_of(response) == []

    response["data"]["more"] = 1
    del response["meta"]["timestamp"]

    assert problems_of(response) == [
        "$.meta.timestamp: is missing",
        "$.data.more: is not in the schema",
    ]


def test_the_data_of_an_unknown_command_may_be_anything(response: dict[str, Any]) -> None:
    response["meta"]["command"] = "no.such.command"
    response["data"] = {"anything": [1, None]}

    assert problems_of(response) == []


def test_each_schema_is_a_valid_schema() -> None:
    for manifest in described().values():
        Draft202012Validator.check_schema(envelope_schema(manifest["data"]))
