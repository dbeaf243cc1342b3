"""sampletool/kit/settings/known.py: the settings, and the report of a wrong value."""

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.settings import known as known_module
from sampletool.kit.settings.kinds import KnownSetting
from sampletool.kit.settings.known import (
    SETTINGS,
    all_settings,
    check,
    find_current_name,
    find_setting,
    fixed_values,
    full_help,
)
from sampletool.kit.testing.failing import failure_of, outcome_of

ROUNDING: KnownSetting = {
    "kind": "choice",
    "choices": ("up", "down", "half-up"),
    "default": "up",
    "help": "How to round.",
}
CURRENCY: KnownSetting = {
    "kind": "pattern",
    "pattern": "[A-Z]{3}",
    "pattern_help": "three capital letters",
    "default": "EUR",
    "help": "The currency.",
}


def test_auto_is_the_default_or_lets_the_command_choose() -> None:
    jobs = outcome_of(lambda: check("jobs", "auto", "a file"))
    session_ttl = outcome_of(lambda: check("session_ttl", "auto", "a file"))

    assert jobs is None
    assert session_ttl == 7 * 86400


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        ("call_log", "switch", "on"),
        ("format", "choice", "auto"),
        ("jobs", "count", "auto"),
        ("lock_timeout", "duration", "auto"),
        ("session_ttl", "duration", "7d"),
    ],
)
def test_each_setting_of_the_kit_has_a_kind_a_default_and_a_help(
    name: str,
    kind: str,
    default: str,
) -> None:
    known = SETTINGS[name]

    assert known.keys() - {"choices"} == {"kind", "default", "help"}
    assert (known["kind"], known["default"]) == (kind, default)
    assert known["help"].endswith(".")


def test_a_setting_of_the_kit_is_found_without_importing_the_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse() -> None:
        raise AssertionError("the settings of all parts were imported")

    monkeypatch.setattr(known_module, "all_settings", refuse)

    assert find_setting("jobs") == SETTINGS["jobs"]


@pytest.mark.parametrize(
    ("name", "value", "message", "hint"),
    [
        (
            "jobs",
            0,
            "Invalid value for jobs: 0 (from the command line).",
            'Use a whole number of at least 1, or "auto".',
        ),
        (
            "jobs",
            "no",
            "Invalid value for jobs: 'no' (from the command line).",
            'Use a whole number of at least 1, or "auto".',
        ),
        (
            "session_ttl",
            3,
            "Invalid value for session_ttl: 3 (from the command line).",
            "Use a duration such as 30s, or 0. Did you mean 3s?",
        ),
        (
            "format",
            "txt",
            "Invalid value for format: 'txt' (from the command line).",
            "Use json, jsonl or text, or \"auto\". Did you mean 'text'?",
        ),
        (
            "rounding",
            "sideways",
            "Invalid value for rounding: 'sideways' (from the command line).",
            "Use up, down or half-up.",
        ),
        (
            "rounding",
            ["up"],
            "Invalid value for rounding: ['up'] (from the command line).",
            "Use up, down or half-up.",
        ),
        (
            "currency",
            "EURO",
            "Invalid value for currency: 'EURO' (from the command line).",
            "Use three capital letters.",
        ),
    ],
)
def test_a_wrong_value_is_reported_with_its_source_and_what_to_use(
    name: str,
    value: object,
    message: str,
    hint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SETTINGS, "rounding", ROUNDING)
    monkeypatch.setitem(SETTINGS, "currency", CURRENCY)

    error = failure_of(lambda: check(name, value, "the command line"))

    assert isinstance(error, InvalidValues)
    assert (error.message, error.suggestion) == (message, hint)
    assert error.mistakes[0].param == name
    assert error.mistakes[0].value == str(value)


def test_the_hint_for_a_long_value_says_how_long_the_value_of_a_pattern_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SETTINGS, "name", {**CURRENCY, "pattern": ".+", "pattern_help": "a name"})

    error = failure_of(lambda: check("name", "x" * 201, "a file"))

    assert isinstance(error, InvalidValues)
    assert error.suggestion == "Use a name. The value can have at most 200 characters."


def test_the_full_help_says_which_values_to_use() -> None:
    assert full_help(ROUNDING) == "How to round. Use up, down or half-up."
    assert full_help(CURRENCY) == "The currency. Use three capital letters."
    assert full_help(SETTINGS["format"]).endswith('Use json, jsonl or text, or "auto".')
    assert full_help(SETTINGS["jobs"]) == SETTINGS["jobs"]["help"]


def test_the_values_of_a_choice_and_a_switch_can_be_listed() -> None:
    assert fixed_values(ROUNDING) == ["up", "down", "half-up"]
    assert fixed_values(SETTINGS["format"]) == ["json", "jsonl", "text", "auto"]
    assert fixed_values(SETTINGS["call_log"]) == ["on", "off"]
    assert fixed_values(CURRENCY) == []
    assert fixed_values(SETTINGS["jobs"]) == []


def test_a_key_that_is_no_setting_of_the_tool_is_not_known() -> None:
    assert find_setting("colour") is None
    assert find_setting("jobs") == all_settings()["jobs"]
    assert list(all_settings()) == sorted(all_settings())


def test_a_former_name_leads_to_the_present_one_and_any_other_key_to_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    renamed: KnownSetting = {**SETTINGS["jobs"], "former_names": ("workers",)}
    monkeypatch.setattr(known_module, "all_settings", lambda: {"jobs": renamed})

    assert find_current_name("workers") == "jobs"
    assert find_current_name("jobs") == "jobs"
    assert find_current_name("colour") == "colour"
