"""sampletool/kit/contract/fields.py: the option --fields selects members of `data`."""

from typing import Any, Literal, NamedTuple

import pytest

from sampletool.kit.contract.fields import read_fields, select
from sampletool.kit.contract.manifest import schema_of


class Part(NamedTuple):
    name: str
    state: Literal["good", "bad"]


class Report(NamedTuple):
    parts: list[Part]
    counts: dict[str, int]
    body: Any
    version: int | None = None


class Other(NamedTuple):
    parts: int
    mood: str


_SCHEMA = schema_of(Report)
_DATA = {
    "parts": [{"name": "a", "state": "good"}],
    "counts": {"x": 1, "y": 2},
    "body": {"deep": [1]},
    "version": 3,
}


def only(text: str) -> Any:
    """Return the fields of _DATA that --fields selects."""
    fields, mistakes = read_fields(text, _SCHEMA)
    assert mistakes == []
    return select(_DATA, fields)


def test_a_field_is_selected_by_its_name() -> None:
    assert only("version") == {"version": 3}


def test_the_fields_of_objects_and_of_list_items_are_selected_by_paths() -> None:
    assert only("parts.name,counts.x") == {"parts": [{"name": "a"}], "counts": {"x": 1}}
    assert only("body.deep") == {"body": {"deep": [1]}}


@pytest.mark.parametrize("text", ["parts.name,parts", "parts,parts.name"])
def test_a_field_that_is_selected_whole_and_in_part_is_whole(text: str) -> None:
    assert only(text) == {"parts": _DATA["parts"]}


def test_all_unknown_fields_are_reported_with_what_was_probably_meant() -> None:
    text = "version,part,parts.nam,counts.any,version.x,,parts.state.x"

    _, mistakes = read_fields(text, _SCHEMA)

    assert [(mistake.value, mistake.suggestion) for mistake in mistakes] == [
        ("part", "Did you mean 'parts'?"),
        ("nam", "Did you mean 'name'?"),
        ("x", None),
        ("", "The fields are parts, counts, body, version."),
        ("x", None),
    ]


_EITHER_SCHEMA = [schema_of(Report | Other), schema_of(Other | Report)]


@pytest.mark.parametrize("schema", _EITHER_SCHEMA, ids=["Report first", "Other first"])
def test_if_the_data_has_one_of_two_types_the_fields_of_both_can_be_named(schema: Any) -> None:
    _, no_mistakes = read_fields("mood,parts.name,version", schema)
    _, mistakes = read_fields("moods,parts.nam", schema)

    assert no_mistakes == []
    assert [mistake.value for mistake in mistakes] == ["moods", "nam"]


def test_in_what_can_be_anything_every_field_may_be_named() -> None:
    anything: dict[str, Any] = {}
    anything_or_object = {"anyOf": [_SCHEMA, anything]}
    list_of_anything = {"type": "array", "items": anything}

    for schema in (anything, anything_or_object, list_of_anything):
        assert read_fields("x.y.z,version", schema)[1] == []


def test_nothing_may_be_named_in_what_is_no_object() -> None:
    text = {"type": "string"}
    text_or_number = {"anyOf": [text, {"type": "integer"}]}
    one_of_two = {"enum": ["a", "b"]}

    for schema in (text, text_or_number, one_of_two):
        (mistake,) = read_fields("x", schema)[1]
        assert (mistake.value, mistake.suggestion) == ("x", None)


def test_a_mistake_names_the_option_and_the_place_of_the_field() -> None:
    at_the_top, inside = read_fields("zzz,parts.zzz", _SCHEMA)[1]

    assert (at_the_top.param, at_the_top.code) == ("--fields", "UNKNOWN_FIELD")
    assert at_the_top.message == "The output has no field 'zzz'"
    assert inside.message == "parts has no field 'zzz'"
    assert inside.suggestion == "The fields are name, state."


def test_fields_are_selected_in_lists_of_lists_and_other_values_stay() -> None:
    assert select([[{"a": 1, "b": 2}]], {"a": {}}) == [[{"a": 1}]]
    assert select(7, {"a": {}}) == 7
    assert select({"a": None, "b": 2}, {"b": {}, "a": {"x": {}}}) == {"a": None, "b": 2}
    assert select({"a": 1}, {}) == {"a": 1}


def test_a_field_that_is_selected_whole_stays_whole_in_either_order() -> None:
    assert read_fields("parts,parts.name", _SCHEMA)[0] == {"parts": {}}
    assert read_fields("parts.name,parts", _SCHEMA)[0] == {"parts": {}}
    assert read_fields("parts.name,parts.state", _SCHEMA)[0] == {"parts": {"name": {}, "state": {}}}
