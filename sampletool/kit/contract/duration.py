"""Durations as people write them: `0`, `500ms`, `5s`, `2m`, `1h`, `7d`; and moments, as answers have them."""

import re

from .text import quoted

_UNIT_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_NUMBER = r"([0-9]{1,9}(?:\.[0-9]{1,3})?)"
_LONGEST_SECONDS = 100 * 365 * 86400


def parse_duration(text: str) -> float:
    """Seconds, or ValueError with a sentence. A bare number other than 0 has no unit and is refused."""
    if text == "0":
        return 0.0
    form = re.fullmatch(f"{_NUMBER}(ms|s|m|h|d)", text)
    if form is None:
        meant = re.fullmatch(f"{_NUMBER}(ms|milli|s|m|h|d|$)[a-z]*", "".join(text.lower().split()))
        hint = f"; write {meant[1]}{meant[2].replace('milli', 'ms') or 's'}" if meant else ""
        raise ValueError(f"{quoted(text)} is not a duration such as 0, 500ms, 5s, 2m, 1h or 7d{hint}")
    seconds = float(form[1]) * _UNIT_SECONDS[form[2]]
    if seconds > _LONGEST_SECONDS:
        raise ValueError(f"{quoted(text)} is not a duration of less than a hundred years")
    return seconds


def parse_limit(text: str) -> float:
    """The same, for what would leave no time to do anything if it were 0."""
    seconds = parse_duration(text)
    if seconds == 0:
        raise ValueError("nothing can be done within 0")
    return seconds


def say_duration(seconds: float) -> str:
    """The largest unit that keeps the number short: `30s`, `1.5h`, `7d`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    for unit in ("d", "h", "m"):
        if seconds >= _UNIT_SECONDS[unit]:
            return f"{round(seconds / _UNIT_SECONDS[unit], 1):g}{unit}"
    return f"{round(seconds, 1):g}s"
