"""Each kind of setting has its values, and a wrong value is reported with its source."""

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.settings import known as known_module
from sampletool.kit.settings.known import (
    SETTINGS,
    KnownSetting,
    all_settings,
    check,
    find_current_name,
    find_setting,
    read_as,
)
from sampletool.kit.testing.failing import failure_of, outcome_of


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
        ("format", "text", "text"),
        ("count", "1", 1),
        ("format", "jsonl", "jsonl"),
        ("text", "x", "x"),
    ],
)
def test_a_value_is_parsed_as_its_kind_requires(kind: str, value: object, expected: object) -> None:
    parsed = outcome_of(lambda: read_as(kind, value))

    assert parsed == expected
    assert type(parsed) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ("duration", "2", "'2' is not a valid duration"),
        ("count", "0", "'0' is not a whole number of at least 1"),
        ("count", True, "True is not a whole number"),
        ("count", "1.5", "'1.5' is not a whole number"),
        ("switch", "yes", "'yes' is not on or off"),
        ("format", "raw", "'raw' is not json, jsonl or text"),
        ("text", "", "'' is not text that is not empty"),
        ("text", 1, "1 is not text that is not empty"),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: str, value: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_as(kind, value)


def test_auto_is_the_default_or_lets_the_command_choose() -> None:
    jobs = outcome_of(lambda: check("jobs", "auto", "a file"))
    session_ttl = outcome_of(lambda: check("session_ttl", "auto", "a file"))

    assert jobs is None
    assert session_ttl == 7 * 86400


@pytest.mark.parametrize(
    ("name", "kind", "default"),
    [
        ("call_log", "switch", "on"),
        ("format", "format", "auto"),
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

    assert known.keys() == {"kind", "default", "help"}
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
    ],
)
def test_a_wrong_value_is_reported_with_its_source_and_what_to_use(
    name: str, value: object, message: str, hint: str
) -> None:
    error = failure_of(lambda: check(name, value, "the command line"))

    assert isinstance(error, InvalidValues)
    assert (error.message, error.suggestion) == (message, hint)
    assert error.mistakes[0].param == name
    assert error.mistakes[0].value == str(value)


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
