"""The option --fields."""

from typing import Any, Literal, NamedTuple

from sampletool.kit.contract.fields import read_fields, select
from sampletool.kit.contract.manifest import schema_of


class Part(NamedTuple):
    name: str
    state: Literal["good", "bad"]


class Told(NamedTuple):
    parts: list[Part]
    counts: dict[str, int]
    body: Any
    version: int | None = None


class Other(NamedTuple):
    parts: int
    mood: str


_SCHEMA = schema_of(Told)
_DATA = {"parts": [{"name": "a", "state": "good"}], "counts": {"x": 1, "y": 2}, "body": {"deep": [1]}, "version": 3}


def only(text: str) -> Any:
    fields, mistakes = read_fields(text, _SCHEMA)
    assert mistakes == []
    return select(_DATA, fields)


def test_only_the_fields_that_are_named_stay_also_inside_of_lists() -> None:
    assert only("version") == {"version": 3}
    assert only("parts.name,counts.x") == {"parts": [{"name": "a"}], "counts": {"x": 1}}
    assert only("parts.name,parts") == only("parts,parts.name") == {"parts": _DATA["parts"]}
    assert only("body.deep") == {"body": {"deep": [1]}}


def test_names_that_the_schema_does_not_have_are_all_reported_with_what_is_near() -> None:
    mistakes = read_fields("version,part,parts.nam,counts.any,version.x,,parts.state.x", _SCHEMA)[1]

    assert [(mistake.value, mistake.suggestion) for mistake in mistakes] == [
        ("part", "Did you mean 'parts'?"),
        ("nam", "Did you mean 'name'?"),
        ("x", None),
        ("", "The fields are parts, counts, body, version."),
        ("x", None),
    ]


def test_of_two_shapes_the_fields_of_both_may_be_named() -> None:
    for both in (schema_of(Told | Other), schema_of(Other | Told)):
        assert read_fields("mood,parts.name,version", both)[1] == []
        assert [mistake.value for mistake in read_fields("moods,parts.nam", both)[1]] == ["moods", "nam"]
