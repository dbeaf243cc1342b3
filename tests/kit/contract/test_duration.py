"""Durations as people write them."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sampletool.kit.contract.duration import parse_duration, parse_limit, say_duration


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("500ms", 0.5), ("5s", 5), ("1.5s", 1.5), ("2m", 120), ("1h", 3600), ("7d", 604800)]
)
def test_a_duration_is_a_number_and_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "5", "-1s", "1 s", "s", "1e3s", "nan", "infs", "1s\n", "\u0661s", "99999999999s", "0.1", ".", "1.2.3s"]
)
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration") as refused:
        parse_duration(text)
    if hint := str(refused.value).partition("; write ")[2]:
        parse_duration(hint)


@example(5400.0)  # few examples are between two whole units
@given(st.floats(min_value=0.001, max_value=10**7))
def test_what_is_said_reads_back_as_about_the_same(seconds: float) -> None:
    assert parse_duration(say_duration(seconds)) == pytest.approx(seconds, rel=0.06, abs=0.001)


@pytest.mark.parametrize(("text", "hint"), [("5", "write 5s"), ("876001h", "less than a hundred years")])
def test_a_refusal_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        parse_duration(text)


def test_a_limit_leaves_some_time() -> None:
    assert parse_limit("1ms") == 0.001
    with pytest.raises(ValueError, match="within 0"):
        parse_limit("0")
