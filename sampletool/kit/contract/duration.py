"""Durations, as people write them: `0`, `500ms`, `5s`, `2m`, `1.5h`, `7d`."""

import re

from .text import quoted

_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
"""The units, and how many seconds each of them has."""

_NUMBER = r"(?P<number>[0-9]{1,9}(\.[0-9]{1,3})?)"
_DURATION = rf"{_NUMBER}(?P<unit>ms|s|m|h|d)"

_SIMILAR_TO_DURATION = rf"{_NUMBER}(?P<unit>ms|milli|s|m|h|d|)[a-z]*"
"""A number with any word, or without one, such as `5sec` and `5`. `milli` must come before `m`."""

_MAX_YEARS = 100
_MAX_SECONDS = _MAX_YEARS * 365 * 86400


def parse_duration(text: str) -> float:
    """Return the seconds of a duration.

    Raise ValueError, with a message for the user, if it is not a number followed by a unit. Only 0
    needs no unit: with any other number, the caller may have meant seconds or milliseconds.
    """
    if text == "0":
        return 0.0
    match = re.fullmatch(_DURATION, text)
    if match is None:
        message = f"{quoted(text)} is not a valid duration"
        advice = "Use a number and a unit, for example 500ms, 5s, 2m, 1h or 7d"
        similar = similar_duration(text)
        if similar is not None:
            advice = f"{advice} (did you mean {similar}?)"
        raise ValueError(f"{message}. {advice}")
    seconds = float(match["number"]) * _UNIT_SECONDS[match["unit"]]
    if seconds > _MAX_SECONDS:
        raise ValueError(f"{quoted(text)} is longer than {_MAX_YEARS} years")
    return seconds


def parse_limit(text: str) -> float:
    """Return the seconds of a limit, a duration that must be longer than 0.

    Raise ValueError, with a message for the user, if it is not.
    """
    seconds = parse_duration(text)
    if seconds == 0:
        raise ValueError("a limit must be longer than 0")
    return seconds


def say_duration(seconds: float) -> str:
    """Return the duration in the largest unit that fits, such as `30s`, `1.5h` or `7d`.

    It is rounded to one decimal, and to whole milliseconds below one second.
    """
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    for unit in ("d", "h", "m"):
        unit_seconds = _UNIT_SECONDS[unit]
        if seconds >= unit_seconds:
            return f"{_one_decimal(seconds / unit_seconds)}{unit}"
    return f"{_one_decimal(seconds)}s"


def similar_duration(text: str) -> str | None:
    """Return the duration that was probably meant: `5s` for `5` or `5 sec`. None if unclear."""
    lower_without_spaces = "".join(text.lower().split())
    match = re.fullmatch(_SIMILAR_TO_DURATION, lower_without_spaces)
    if match is None:
        return None
    # Only the start of a longer unit is matched: this is "s" for "sec", and "milli" for "millis".
    unit = match["unit"]
    if unit == "milli":
        unit = "ms"
    elif unit == "":
        unit = "s"
    return f"{match['number']}{unit}"


def _one_decimal(number: float) -> str:
    """Return the number with one decimal, or with none if that would be 0."""
    return f"{round(number, 1):g}"
