"""What an answer costs: the fields that are asked for, and 64 KiB at most."""

import json
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampletool.kit.contract.answer import LARGEST_BYTES, json_line
from sampletool.kit.contract.manifest import schema_of
from sampletool.kit.contract.size import picked, read_fields, shortened


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
_VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=15,
)


def only(text: str) -> Any:
    fields, mistakes = read_fields(text, _SCHEMA)
    assert mistakes == []
    return picked(_DATA, fields)


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
        ("", "There are parts, counts, body, version."),
        ("x", None),
    ]


def test_of_two_shapes_the_fields_of_both_may_be_named() -> None:
    for both in (schema_of(Told | Other), schema_of(Other | Told)):
        assert read_fields("mood,parts.name,version", both)[1] == []
        assert [mistake.value for mistake in read_fields("moods,parts.nam", both)[1]] == ["moods", "nam"]


def cut(data: Any) -> dict[str, Any]:
    envelope = {"ok": True, "data": data, "warnings": [], "meta": {"command": "x"}}
    small = shortened(envelope, lambda count: f"after:{count}")
    assert len(json_line(small)) <= LARGEST_BYTES
    assert small["meta"]["truncated"]
    return small


def test_a_list_is_cut_at_an_item_and_the_cursor_is_that_of_the_last_one_that_is_left() -> None:
    small = cut({"items": [{"id": number, "body": "é" * 1000} for number in range(100)], "version": 7})

    items = small["data"]["items"]
    assert items == [{"id": number, "body": "é" * 1000} for number in range(len(items))]
    assert len(items) == 10
    assert small["data"]["version"] == 7
    assert small["meta"]["next_cursor"] == "after:10"
    assert "data.items[] (10 of 100): go on with --after" in small["warnings"][0]["message"]


def test_a_text_is_cut_at_a_character_as_late_as_can_be() -> None:
    for letter in ("a", "é", "\x1b", "😀"):
        small = cut({"value": letter * 300_000, "key": "k"})

        assert small["data"]["value"].strip(letter) == "…"
        assert len(json_line(small)) > LARGEST_BYTES - 2_000
        assert "next_cursor" not in small["meta"]


def test_one_large_item_is_cut_inside_and_members_share_what_room_there_is() -> None:
    data = cut({"items": [{"tail": "x" * 100_000, "log": "y" * 100_000, "id": 1}, {"id": 2}]})["data"]

    (item,) = data["items"]
    assert item["id"] == 1
    assert 30_000 < len(item["tail"]) < 34_000
    assert 30_000 < len(item["log"]) < 34_000


def test_an_object_is_cut_at_a_member_where_the_names_alone_leave_no_room() -> None:
    many = cut({"value": {f"key{number:06}": number for number in range(8000)}})
    long = cut({"value": {"k" * 70_000: 1}})
    long_before = cut({"value": {"é" * 900: "x" * 70_000, "b": [[["y" * 70_000]]]}})

    kept = many["data"]["value"]
    assert list(kept.items()) == [(f"key{number:06}", number) for number in range(len(kept))]
    assert len(kept) > 3500
    assert f"data.value{{}} ({len(kept)} of 8000)" in many["warnings"][0]["message"]
    assert long["data"] == {"value": {}}
    assert "data.value{} (0 of 1)" in long["warnings"][0]["message"]
    assert long_before["data"]["value"].keys() == {"é" * 900, "b"}
    assert len(json_line(long_before)) > LARGEST_BYTES - 2_000


@pytest.mark.parametrize(
    "value",
    [
        {"k" * 30_000: {"l" * 30_000: {"m" * 30_000: 1}}},
        {"k" * 60_000: "x" * 70_000, "b": [1] * 9_000},
        {str(number): ["x" * 99] for number in range(5_000)},
        {str(number): {"é" * 50: number} for number in range(5_000)},
        {f"{number}é\U0001f600": 10**4_000 for number in range(40)},
        [[[["x" * 70_000] * 9]]],
        [{}] * 30_000,
        10**4_000,
    ],
    ids=lambda value: json.dumps(value)[:9],
)
def test_whatever_is_large_is_cut_to_64_kib_and_the_place_is_named(value: Any) -> None:
    small = cut({"value": value, "other": ["y" * 70_000]})

    assert "data." in small["warnings"][0]["message"]


def test_what_is_said_of_the_call_stays_whole_however_little_of_the_data_is_left() -> None:
    tree: Any = "x" * 40
    for _ in range(12):  # at 10 all of it would fit
        tree = {"a": tree, "b": tree}
    meta = {"command": "x", "cwd": f"/{'d' * 300}"}

    small = shortened({"ok": True, "data": {"value": tree}, "warnings": [], "meta": meta}, None)

    assert small["meta"] == {**meta, "truncated": True}


def test_of_what_cannot_fit_no_more_is_looked_at_than_fits() -> None:
    looks = 0

    class Branch(dict[str, Any]):
        def items(self) -> Any:
            nonlocal looks
            looks += 1
            return super().items()

    def tree(depth: int) -> Any:
        return Branch((name, tree(depth - 1)) for name in "abcd") if depth else "x" * 10

    small = cut({"value": tree(7)})

    assert "data.value" in small["warnings"][0]["message"]
    assert looks < 60_000  # 93,000 where each limit is tried on all of it


@given(_VALUES, st.integers(min_value=1, max_value=9))
def test_whatever_is_cut_keeps_its_shape(value: Any, times: int) -> None:
    small = cut({"a": value, "b": ["z" * 9000 for _ in range(times)], "c": "x" * 70_000})["data"]

    assert small.keys() == {"a", "b", "c"}
    assert small["a"] == json.loads(json.dumps(value))
