"""Values as people type them."""

from typing import Any

import pytest

from sampletool.kit.settings.toml_key import parse_value


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
        ("9007199254740993", "9007199254740993"),
        ("1 # one", "1 # one"),
        ('"x" # c', '"x" # c'),
        ("[1] # c", "[1] # c"),
        ("{a = 1} # c", "{a = 1} # c"),
        ('"a # b"', "a # b"),
        ('["#"]', ["#"]),
        ('"x", 0] #', '"x", 0] #'),
        ("[" * 101 + "]" * 101, "[" * 101 + "]" * 101),
        ("1\nx = 2", "1\nx = 2"),
        ("", ""),
        ("{" + "a." * 6000 + "a = 1}", "{" + "a." * 6000 + "a = 1}"),
        ("True", "True"),
        ("[" * 500, "[" * 500),
    ],
)
def test_a_value_is_toml_only_if_it_is_printed_as_typed(text: str, value: Any) -> None:
    parsed = parse_value(text)

    assert parsed == value
    assert type(parsed) is type(value)
