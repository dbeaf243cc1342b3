"""sampletool/kit/settings/kinds.py: each kind of setting has its values."""

import datetime

import pytest

from sampletool.kit.settings.kinds import KnownSetting, describe_values, read_value
from sampletool.kit.testing.failing import outcome_of


def setting_of(kind: str) -> KnownSetting:
    """Return a setting of this kind."""
    setting: KnownSetting = {"kind": kind, "default": "auto", "help": "Help."}
    if kind == "choice":
        setting["choices"] = ("up", "down", "7", "true")
    if kind == "pattern":
        setting["pattern"] = "[A-Z]{3}|[0-9-]+"
        setting["pattern_help"] = "three capital letters, or digits"
    return setting


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("duration", "2m", 120.0),
        ("count", "3", 3),
        ("count", 4, 4),
        ("count", 1, 1),
        ("switch", "on", True),
        ("switch", "off", False),
        ("switch", True, True),
        ("switch", False, False),
        ("count", "1", 1),
        ("text", "x", "x"),
        ("choice", "down", "down"),
        ("pattern", "EUR", "EUR"),
    ],
)
def test_a_value_is_parsed_as_its_kind_requires(kind: str, value: object, expected: object) -> None:
    parsed = outcome_of(lambda: read_value(setting_of(kind), value))

    assert parsed == expected
    assert type(parsed) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("choice", 7, "7"),
        ("choice", True, "true"),
        ("pattern", 2026, "2026"),
        ("pattern", datetime.date(2026, 1, 31), "2026-01-31"),
    ],
)
def test_what_toml_takes_for_a_number_or_a_date_is_compared_as_text(
    kind: str,
    value: object,
    expected: str,
) -> None:
    assert read_value(setting_of(kind), value) == expected


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("duration", "2", "'2' is not a valid duration"),
        ("count", "0", "'0' is not a whole number of at least 1"),
        ("count", True, "True is not a whole number"),
        ("count", "1.5", "'1.5' is not a whole number"),
        ("switch", "yes", "'yes' is not on or off"),
        ("text", "", "'' is not text that is not empty"),
        ("text", 1, "1 is not text that is not empty"),
        ("choice", "sideways", "'sideways' is not up, down, 7 or true"),
        ("choice", "Up", "'Up' is not up, down"),
        ("choice", "", "'' is not up, down"),
        ("choice", ["up"], "is not up, down"),
        ("pattern", "eur", "'eur' is not three capital letters, or digits"),
        ("pattern", "EURO", "'EURO' is not three capital letters"),
        ("pattern", "EUR\n", "is not three capital letters"),
        ("pattern", "", "'' is not three capital letters"),
        ("pattern", {"EUR": 1}, "is not three capital letters"),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: str, value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_value(setting_of(kind), value)


def test_a_pattern_is_compared_with_200_characters_at_most() -> None:
    longest = "1" * 200

    assert read_value(setting_of("pattern"), longest) == longest
    with pytest.raises(ValueError, match="is not three capital letters"):
        read_value(setting_of("pattern"), longest + "1")


def test_two_choices_are_joined_with_or() -> None:
    setting: KnownSetting = {**setting_of("choice"), "choices": ("up", "down")}

    assert describe_values(setting) == "up or down"
