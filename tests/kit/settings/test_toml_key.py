"""Keys and values as people type them, and as TOML writes them."""

import tomllib
from typing import Any

import pytest

from sampletool.kit.contract.mistyped import Mistyped
from sampletool.kit.safety.toml_limits import MAX_TOML_BYTES
from sampletool.kit.settings.toml_key import parse_key, parse_value, show_key, show_value, value_at
from sampletool.kit.testing.failing import failure_of, outcome_of


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-5", -5),
        ("true", True),
        ("1.5", 1.5),
        ("[1, 2]", [1, 2]),
        ('["a", "b"]', ["a", "b"]),
        ('"5"', "5"),
        ("{a = 1}", {"a": 1}),
        ("val1", "val1"),
        ("1.10", "1.10"),
        ("0x10", "0x10"),
        ("+5", "+5"),
        ("007", "007"),
        ("1_000", "1_000"),
        ("nan", "nan"),
        ("inf", "inf"),
        ("[nan]", "[nan]"),
        ("1979-05-27", "1979-05-27"),
        ("12345678901234567890", "12345678901234567890"),
        ("9007199254740991", 9007199254740991),
        ("-9007199254740991", -9007199254740991),
        ("9007199254740992", "9007199254740992"),
        ("9007199254740993", "9007199254740993"),
        ("[9007199254740993]", "[9007199254740993]"),
        ("[1979-05-27]", "[1979-05-27]"),
        ("{a = nan}", "{a = nan}"),
        ("1 # one", "1 # one"),
        ('"x" # c', '"x" # c'),
        ("[1] # c", "[1] # c"),
        ("{a = 1} # c", "{a = 1} # c"),
        ('"a # b"', "a # b"),
        ('["#"]', ["#"]),
        ('"x", 0] #', '"x", 0] #'),
        ("[" * 101 + "]" * 101, "[" * 101 + "]" * 101),
        ("[\n1]", "[\n1]"),
        ("1\nx = 2", "1\nx = 2"),
        ("", ""),
        ("{" + "a." * 6000 + "a = 1}", "{" + "a." * 6000 + "a = 1}"),
        ("True", "True"),
        ("[" * 500, "[" * 500),
    ],
)
def test_a_value_is_toml_only_if_it_is_printed_as_typed(text: str, value: Any) -> None:
    parsed = outcome_of(lambda: parse_value(text))

    assert parsed == value
    assert type(parsed) is type(value)


def test_a_value_that_is_too_large_for_a_file_is_not_parsed() -> None:
    too_large = '"' + "x" * MAX_TOML_BYTES + '"'

    value = outcome_of(lambda: parse_value(too_large))

    assert value == too_large


@pytest.mark.parametrize("levels", [1, 100])
@pytest.mark.parametrize(
    ("opening", "innermost", "closing", "kind"),
    [
        ("[", "", "]", list),
        ("{a = ", "1", "}", dict),
    ],
    ids=["lists", "tables"],
)
def test_lists_and_tables_are_read_up_to_100_levels(
    levels: int,
    opening: str,
    innermost: str,
    closing: str,
    kind: type,
) -> None:
    text = opening * levels + innermost + closing * levels
    too_deep = opening * 101 + innermost + closing * 101

    value = outcome_of(lambda: parse_value(text))
    unread = outcome_of(lambda: parse_value(too_deep))

    assert isinstance(value, kind)
    assert unread == too_deep


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a", ("a",)),
        ("build.jobs", ("build", "jobs")),
        ("a-b_c.1", ("a-b_c", "1")),
        ('"a.b".c', ("a.b", "c")),
        ("'a b'", ("a b",)),
        ('a . "b"', ("a", "b")),
        ('"ü"', ("ü",)),
    ],
)
def test_a_key_is_read_as_in_toml_and_shown_with_quotes_where_needed(
    text: str,
    path: tuple[str, ...],
) -> None:
    parsed = outcome_of(lambda: parse_key(text))
    read_again = outcome_of(lambda: parse_key(show_key(path)))

    assert parsed == path
    assert read_again == path


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (("a", "b-c", "d_1"), "a.b-c.d_1"),
        (("a b",), '"a b"'),
        (("a.b", "c"), '"a.b".c'),
        (("",), '""'),
        (("ü",), '"ü"'),
        (('say "x"',), '"say \\"x\\""'),
        (("\x7f",), '"\\u007f"'),
    ],
)
def test_a_part_of_a_key_is_quoted_unless_it_has_only_letters_digits_and_dashes(
    path: tuple[str, ...],
    shown: str,
) -> None:
    text = outcome_of(lambda: show_key(path))

    assert text == shown


@pytest.mark.parametrize(
    "text",
    ["a b", "a.", ".a", "a..b", "[a]", "a]", "a = 1", "a\nb", "# a", "ü", "a # b", "'a", ""],
)
def test_a_text_that_is_no_key_is_refused_with_the_form_of_one(text: str) -> None:
    error = failure_of(lambda: parse_key(text))

    assert type(error) is ValueError
    assert "is not a valid key. Use names separated by dots, such as build.jobs" in str(error)


@pytest.mark.parametrize("text", ["null", "undefined", "None", "{}"])
def test_a_text_that_a_script_has_inserted_by_mistake_is_refused_as_mistyped(text: str) -> None:
    error = failure_of(lambda: parse_key(text))

    assert isinstance(error, Mistyped)


def test_a_key_of_100_parts_is_read_and_a_longer_one_is_not() -> None:
    longest = outcome_of(lambda: parse_key(".".join(["a"] * 100)))
    too_long = failure_of(lambda: parse_key(".".join(["a"] * 101)))

    assert longest == ("a",) * 100
    assert str(too_long) == "A key can have at most 100 parts, but this one has 101"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1, "1"),
        (True, "true"),
        ("a\x7f\n", '"a\\u007f\\n"'),
        (1.5, "1.5"),
        (1e16, "1e+16"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
        ([], "[]"),
        ([1, "x"], '[1, "x"]'),
        ({}, "{}"),
        ({"a b": {"c": [1]}, "d": 2.0}, '{"a b" = {c = [1]}, d = 2.0}'),
    ],
    ids=repr,
)
def test_a_value_is_written_on_one_line(value: object, shown: str) -> None:
    text = outcome_of(lambda: show_value(value))

    assert text == shown
    assert repr(tomllib.loads(f"x = {text}")["x"]) == repr(value)


@pytest.mark.parametrize(
    "text",
    [
        "1979-05-27",
        "07:32:00",
        "07:32:00.999999",
        "1979-05-27T07:32:00",
        "1979-05-27T07:32:00+00:00",
        "1979-05-27T00:32:00.5-07:00",
    ],
)
def test_a_date_or_time_is_written_as_it_was_read(text: str) -> None:
    value = tomllib.loads(f"x = {text}")["x"]

    shown = outcome_of(lambda: show_value(value))

    assert repr(tomllib.loads(f"x = {shown}")["x"]) == repr(value)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((), {"a": {"b": 1}}),
        (("a",), {"b": 1}),
        (("a", "b"), 1),
        (("a", "c"), None),
        (("a", "b", "c"), None),
        (("x", "b"), None),
    ],
)
def test_a_path_without_a_value_has_none(path: tuple[str, ...], value: object) -> None:
    found = outcome_of(lambda: value_at({"a": {"b": 1}}, path))

    assert found == value
