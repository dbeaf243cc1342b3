"""An edit that changes more than one key, or a comment, is told from one that does not."""

import pytest

from sampletool.kit.safety.toml_file import parse
from sampletool.kit.settings.toml_check import (
    Difference,
    Template,
    documents_without,
    find_difference,
    is_blank,
    reads_as,
    removes_one_key,
    replaces_only_value,
    with_value,
)
from sampletool.kit.testing.failing import outcome_of


@pytest.mark.parametrize(
    ("old", "new", "region"),
    [
        ("a = 1\n", "a = 1\n", Difference(6, "", "")),
        ("", "a = 1\n", Difference(0, "", "a = 1\n")),
        ("a = 1\n", "", Difference(0, "a = 1\n", "")),
        ("a = 1\nb = 2\n", "b = 2\n", Difference(0, "a = 1\n", "")),
        ("a = 1\nb = 2\n", "a = 1\n", Difference(6, "b = 2\n", "")),
        ("a = 1\n", "a = 1\nb = 2\n", Difference(6, "", "b = 2\n")),
        ("a = 1 # why\n", "a = 3 # why\n", Difference(4, "1", "3")),
        ("a1 = 1\na2 = 2\n", "a2 = 2\n", Difference(0, "a1 = 1\n", "")),
        ("a2 = 2\n", "a1 = 1\na2 = 2\n", Difference(0, "", "a1 = 1\n")),
        ("x = 0\na1 = 1\na2 = 2\n", "x = 0\na2 = 2\n", Difference(6, "a1 = 1\n", "")),
        ("t = {a = 1, b = 2}\n", "t = {b = 2}\n", Difference(5, "a = 1, ", "")),
        ("t = {a = 1, ab = 2}\n", "t = {ab = 2}\n", Difference(6, " = 1, a", "")),
    ],
)
def test_the_region_is_the_smallest_that_differs_from_the_start_of_a_line_if_possible(
    old: str, new: str, region: Difference
) -> None:
    found = outcome_of(lambda: find_difference(old, new))

    assert found == region
    assert region.applied_to(old) == new


@pytest.mark.parametrize(
    ("old", "start", "removed", "new"),
    [
        ("a = 1\n", 0, "a = 1\n", ""),
        ("a = 1", 0, "a = 1", ""),
        ("x = 0\na = 1", 6, "a = 1", ""),
        ("x = 0\na = 1 # why\ny = 2\n", 6, "a = 1 # why\n", ""),
        ("x = 0\na = 1\ny = 2\n", 6, "a = 1\n", " \t"),
        ("a = [\n 1, # one\n]\n", 0, "a = [\n 1, # one\n]\n", ""),
        ("a = {b = [1, 2], c = {}} # [\n", 0, "a = {b = [1, 2], c = {}} # [\n", ""),
        ("'a = [' = 1\r\n", 0, "'a = [' = 1\r\n", ""),
        ("a = '''\n# text\n'''\n", 0, "a = '''\n# text\n'''\n", ""),
        ("t = {a = 1, b = 2} # why\n", 5, "a = 1, ", ""),
        ("t = {a = '# text', b = 2} # why\n", 5, "a = '# text', ", ""),
    ],
)
def test_the_lines_of_one_key_or_a_part_of_braces_are_one_key(
    old: str,
    start: int,
    removed: str,
    new: str,
) -> None:
    region = Difference(start, removed, new)

    is_one_key = outcome_of(lambda: removes_one_key(old, region))

    assert is_one_key is True


@pytest.mark.parametrize(
    ("old", "start", "removed", "new"),
    [
        ("a = 1\nb = 2\n", 0, "a = 1\nb = 2\n", ""),
        ("# about x\na = 1\n", 0, "# about x\na = 1\n", ""),
        ("a = 1\n# about x\n", 0, "a = 1\n# about x\n", ""),
        ("# about x\n", 0, "# about x\n", ""),
        ("[t]\na = 1\n[t.u]\n", 0, "[t]\na = 1\n", ""),
        ("[t] # why\n# about a\na = 1\n", 0, "[t] # why\n# about a\na = 1\n", ""),
        ("a.b = 1\n[a.c]\n[a.c.d]\n", 0, "a.b = 1\n[a.c]\n", ""),
        ("a.b = 1\n# about c\na.c = 1\n", 0, "a.b = 1\n# about c\na.c = 1\n", ""),
        ("a.b = 1\na.c = [\n]\n", 0, "a.b = 1\na.c = [\n]\n", ""),
        ("\na = 1\n", 0, "\na = 1\n", ""),
        ("\t", 0, "\t", ""),
        ("a = 1\n\n", 0, "a = 1\n\n", ""),
        ("[t]\na = 1\n", 0, "[t]\n", "x"),
        ("a = 1\n", 0, "a = 1\n", "b"),
        ("a = 1\n", 0, "a = 1\n", "\n"),
        ("a = [\n", 0, "a = [\n", ""),
        ("x = 0 # why\na = 1\n", 5, " # why\na = 1", ""),
        ("x = 0\na = 1\n", 5, "\na = 1", ""),
        ("t = {a = 1} # why\n", 5, "a = 1} # why", ""),
        ("x = 0 # why\n", 5, " # why", ""),
    ],
    ids=repr,
)
def test_anything_more_than_one_key_is_told(old: str, start: int, removed: str, new: str) -> None:
    region = Difference(start, removed, new)

    is_one_key = outcome_of(lambda: removes_one_key(old, region))

    assert is_one_key is False


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a = ", " # why\n", True),
        ("a = ", "\n", False),
        ("a = 1", " # why\n", False),
        ("a = ", "# why\n", True),
        ("a = ", "1 # why\n", False),
        ("a =", " # why\n", True),
        ("b = ", " # why\n", False),
        ("a = ", " # because\n", False),
        ("a = 1 # why\n", "a = 1 # why\n", False),
    ],
)
def test_the_template_must_be_where_the_old_value_was(
    before: str, after: str, expected: bool
) -> None:
    template = Template(before, after)

    is_there = outcome_of(lambda: replaces_only_value(template, "a = 1 # why\n", 1))

    assert is_there is expected


def test_a_template_in_place_of_a_value_of_another_type_is_not_where_it_was() -> None:
    template = Template("a = ", "\n")

    is_there = outcome_of(lambda: replaces_only_value(template, "a = 1\n", 1.0))

    assert is_there is False
    assert template.filled("2") == "a = 2\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", {"a": 1}),
        ("a = nan", {"a": float("nan")}),
        ("a = [1, {b = 'x'}]", {"a": [1, {"b": "x"}]}),
        ("b = 1\na = 2", {"a": 2, "b": 1}),
        ("a = [{c = 1, b = 2}]", {"a": [{"b": 2, "c": 1}]}),
        ("", {}),
    ],
)
def test_a_text_reads_as_its_document(text: str, expected: dict[str, object]) -> None:
    is_read = outcome_of(lambda: reads_as(text, expected))

    assert is_read is True


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", {"a": True}),
        ("a = 1", {"a": 1.0}),
        ("a = 1", {"a": 2}),
        ("a = 1", {"b": 1}),
        ("a = 1", {"a": 1, "b": 2}),
        ("a = 1\nb = 2", {"a": 1}),
        ("a = [1]", {"a": [True]}),
        ("a = [1, 2]", {"a": [1]}),
        ("a = [1]", {"a": [1, 2]}),
        ("a = [1, 2]", {"a": [1, 3]}),
        ("a = {b = 1}", {"a": {"b": 2}}),
        ("a = 'x'", {"a": "y"}),
        ("a = -0.0", {"a": 0.0}),
        ("a = ", {}),
        ("a = " + "[" * 5000, {}),
    ],
)
def test_a_text_does_not_read_as_a_document_that_differs_in_a_value_or_type(
    text: str, expected: dict[str, object]
) -> None:
    is_read = outcome_of(lambda: reads_as(text, expected))

    assert is_read is False


def test_one_time_in_two_zones_is_two_values() -> None:
    in_another_zone = parse("a = 1979-05-27T08:00:00+01:00")

    is_read = outcome_of(lambda: reads_as("a = 1979-05-27T07:00:00Z", in_another_zone))

    assert is_read is False


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (("a",), {"a": 9, "t": {"x": 1}}),
        (("b",), {"a": 0, "t": {"x": 1}, "b": 9}),
        (("t", "x"), {"a": 0, "t": {"x": 9}}),
        (("t", "y"), {"a": 0, "t": {"x": 1, "y": 9}}),
        (("u", "v", "w"), {"a": 0, "t": {"x": 1}, "u": {"v": {"w": 9}}}),
    ],
)
def test_a_value_is_put_into_a_copy(path: tuple[str, ...], expected: dict[str, object]) -> None:
    document = {"a": 0, "t": {"x": 1}}

    changed = outcome_of(lambda: with_value(document, path, 9))

    assert changed == expected
    assert document == {"a": 0, "t": {"x": 1}}


@pytest.mark.parametrize(
    ("document", "path", "expected"),
    [
        ({"a": 1, "b": 2}, ("a",), [{"b": 2}]),
        ({"a": 1}, ("a",), [{}]),
        ({"t": {"a": 1, "b": 2}}, ("t", "a"), [{"t": {"b": 2}}]),
        ({"t": {"a": 1}, "b": 2}, ("t", "a"), [{"t": {}, "b": 2}, {"b": 2}]),
        ({"t": {"u": {"a": 1}}}, ("t", "u", "a"), [{"t": {"u": {}}}, {"t": {}}, {}]),
        (
            {"t": {"u": {"a": 1}, "b": 2}},
            ("t", "u", "a"),
            [{"t": {"u": {}, "b": 2}}, {"t": {"b": 2}}],
        ),
    ],
)
def test_a_removed_key_may_take_the_tables_with_it_that_become_empty(
    document: dict[str, object], path: tuple[str, ...], expected: list[dict[str, object]]
) -> None:
    documents = outcome_of(lambda: documents_without(document, path))

    assert documents == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        (" \t", True),
        ("\n", False),
        ("x", False),
    ],
)
def test_a_line_feed_is_not_blank(text: str, expected: bool) -> None:
    assert is_blank(text) is expected
