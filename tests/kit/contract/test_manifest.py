"""sampletool/kit/contract/manifest.py: errors and responses, described for programs."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import pytest

from sampletool.kit.contract.errors import ErrorKind, Mistake
from sampletool.kit.contract.manifest import describe_errors, envelope_schema, schema_of

_TEXT = {"type": "string"}


@dataclass(frozen=True)
class Person:
    name: str
    age: int | None = None


@dataclass(frozen=True)
class Counts:
    counts: dict[str, int]


class Pair(NamedTuple):
    first: Person
    others: list[Annotated[str, {"x-untrusted": True}]]


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (dict, {"type": "object"}),
        (Any, {}),
        (int | None, {"type": "integer"}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (tuple[str, ...], {"type": "array", "items": {"type": "string"}}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (Annotated[str, {"x-untrusted": True}], {"type": "string", "x-untrusted": True}),
    ],
)
def test_each_type_has_its_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema


def test_a_member_that_can_be_none_is_not_required() -> None:
    schema = schema_of(Person)

    assert schema["properties"] == {"name": {"type": "string"}, "age": {"type": "integer"}}
    assert schema["required"] == ["name"]


def test_records_can_be_members_of_records_and_of_either_kind() -> None:
    schema = schema_of(Pair)

    assert schema["properties"]["first"] == schema_of(Person)
    assert schema["properties"]["others"]["items"] == {**_TEXT, "x-untrusted": True}
    assert schema["required"] == ["first", "others"]


def test_a_result_of_one_of_two_types_has_either_schema() -> None:
    assert schema_of(Person | Counts) == {"anyOf": [schema_of(Person), schema_of(Counts)]}


def test_a_response_has_the_data_of_its_command_or_null() -> None:
    data = schema_of(Person)

    schema = envelope_schema(data)

    assert schema["properties"]["data"] == {"anyOf": [data, {"type": "null"}]}
    assert schema["required"] == ["ok", "data", "warnings", "meta"]
    assert schema["properties"]["error"]["properties"]["errors"]["items"] == schema_of(Mistake)


def test_errors_are_sorted_by_code_and_the_first_of_a_code_is_described() -> None:
    kinds = [
        ErrorKind(code="B", exit_status=5, meaning="First."),
        ErrorKind(code="A", exit_status=75, meaning="Other.", retryable=True),
        ErrorKind(code="B", exit_status=5, meaning="Second."),
    ]

    described = describe_errors(kinds)

    assert list(described) == ["A", "B"]
    assert described["A"] == {"exit_status": 75, "retryable": True, "meaning": "Other."}
    assert described["B"]["meaning"] == "First."
