"""sampletool/kit/testing/patterns.py: patterns that can take exponential time are found."""

import re
import time

import pytest

from sampletool.kit.testing.patterns import can_be_slow

_SECONDS = 0.05


def seconds_to_refuse(pattern: str, text: str) -> float:
    """Return the processor time that it takes to find out that the pattern does not match."""
    start = time.process_time()
    assert re.fullmatch(pattern, text) is None
    return time.process_time() - start


@pytest.mark.parametrize(
    ("slow", "possessive"),
    [
        ("(a+)+b", "(a+)++b"),
        ("(a|a)*b", "(a|a)*+b"),
        ("(?:aa|a){1,99}b", "(?:aa|a){1,99}+b"),
        ("x?((aa?)+)?b", "x?((aa?)++)?b"),
    ],
)
def test_a_repeated_group_is_slow_unless_the_repetition_is_possessive(
    slow: str,
    possessive: str,
) -> None:
    length = 1
    while seconds_to_refuse(slow, "a" * length) < _SECONDS:
        length += 1

    assert length < 50
    assert can_be_slow(slow)
    assert seconds_to_refuse(possessive, "a" * 200) < _SECONDS
    assert not can_be_slow(possessive)


@pytest.mark.parametrize(
    ("slow", "possessive"),
    [
        ("a*a*a*a*a*a*b", "a*+a*+a*+a*+a*+a*+b"),
        (r"\w+[a-z]*\w*\w*\w*(\w+)-", r"\w++[a-z]*+\w*+\w*+\w*+(\w++)-"),
    ],
)
def test_many_repetitions_are_slow_unless_they_are_possessive(slow: str, possessive: str) -> None:
    length = 20
    while seconds_to_refuse(slow, "a" * length) < _SECONDS:
        length += 5

    assert length < 200
    assert can_be_slow(slow)
    assert seconds_to_refuse(possessive, "a" * 200) < _SECONDS
    assert not can_be_slow(possessive)


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "[A-Z]{3}",
        "a*b+c{2,}",
        "(a|bc)?",
        "(?:ab)?-(c+)",
        ".+?",
        "[^,]*",
        r"\d{4}-\d\d",
        "(?>a+)b",
    ],
)
def test_the_repetition_of_a_single_character_is_not_slow(pattern: str) -> None:
    assert not can_be_slow(pattern)


@pytest.mark.parametrize(
    "pattern", ["(ab){2,}", "(?=(a+)+b)c", "x|(y+)*z", "((?:ab)+?)?", "(?i:(a|b)+)"]
)
def test_a_repeated_group_is_found_wherever_it_is(pattern: str) -> None:
    assert can_be_slow(pattern)


def test_what_is_no_regular_expression_is_an_error() -> None:
    with pytest.raises(re.error):
        can_be_slow("[a")
