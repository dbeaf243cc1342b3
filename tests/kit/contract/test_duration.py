"""sampletool/kit/contract/duration.py: durations, as people write them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sampletool.kit.contract.duration import parse_duration, parse_limit, say_duration


def parsed(text: str) -> float | str:
    """Return the seconds. If the text is rejected, return why, for the comparison to show."""
    try:
        return parse_duration(text)
    except (ValueError, LookupError, TypeError) as error:
        return repr(error)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("500ms", 0.5),
        ("5s", 5),
        ("1.5s", 1.5),
        ("1.234s", 1.234),
        ("2m", 120),
        ("1h", 3600),
        ("7d", 604800),
        ("123456789s", 123456789),
    ],
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parsed(text) == seconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5",
        "-1s",
        "1 s",
        "s",
        "1e3s",
        "nan",
        "infs",
        "1s\n",
        "\u0661s",
        "0.1",
        ".",
        "1.2.3s",
        "1.2345s",
    ],
)
def test_a_text_that_is_not_a_duration_is_rejected(text: str) -> None:
    message = r"is not a valid duration\. Use a number and a unit, for example"

    with pytest.raises(ValueError, match=message):
        parse_duration(text)


def test_a_number_of_ten_digits_is_rejected() -> None:
    with pytest.raises(ValueError, match="is not a valid duration"):
        parse_duration("1234567890s")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("5", "5s"),
        ("0.1", "0.1s"),
        ("5 s", "5s"),
        ("5sec", "5s"),
        ("2 Minutes", "2m"),
        ("100 millis", "100ms"),
        ("100 MS", "100ms"),
        ("1.5 hours", "1.5h"),
        ("3 days", "3d"),
    ],
)
def test_the_message_proposes_the_duration_that_was_probably_meant(text: str, meant: str) -> None:
    with pytest.raises(ValueError, match="is not a valid duration") as error:
        parse_duration(text)

    assert str(error.value) == (
        f"'{text}' is not a valid duration. "
        f"Use a number and a unit, for example 500ms, 5s, 2m, 1h or 7d (did you mean {meant}?)"
    )
    assert isinstance(parsed(meant), float)


def test_the_message_proposes_nothing_for_another_text() -> None:
    with pytest.raises(ValueError, match="is not a valid duration") as error:
        parse_duration("soon")

    assert str(error.value) == (
        "'soon' is not a valid duration. "
        "Use a number and a unit, for example 500ms, 5s, 2m, 1h or 7d"
    )


def test_a_duration_has_at_most_a_hundred_years() -> None:
    assert parsed("36500d") == 36500 * 86400

    with pytest.raises(ValueError, match=r"^'36501d' is longer than 100 years$"):
        parse_duration("36501d")


def test_a_limit_must_be_longer_than_0() -> None:
    assert parse_limit("1ms") == 0.001

    with pytest.raises(ValueError, match=r"^a limit must be longer than 0$"):
        parse_limit("0")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0ms"),
        (0.0826, "83ms"),
        (0.999, "999ms"),
        (1, "1s"),
        (1.26, "1.3s"),
        (59, "59s"),
        (60, "1m"),
        (90, "1.5m"),
        (3599, "60m"),
        (3600, "1h"),
        (86399, "24h"),
        (86400, "1d"),
        (7 * 86400, "7d"),
    ],
)
def test_a_duration_is_shown_in_the_largest_unit_that_fits(seconds: float, text: str) -> None:
    assert say_duration(seconds) == text


@example(5400.0)  # few examples are between two whole units
@given(st.floats(min_value=0.001, max_value=10**7))
def test_a_shown_duration_can_be_parsed_and_is_about_the_same(seconds: float) -> None:
    assert parse_duration(say_duration(seconds)) == pytest.approx(seconds, rel=0.06, abs=0.001)
