"""Find regular expressions that can take very long for a text that they do not match.

Python tries every way to divide a text among the repetitions of a group. For `(a+)+b`, there are
2**29 ways to divide a text of 30 letters `a`, and neither a signal nor --timeout ends the search.

A repetition of a single character or a set, such as `[a-z]+`, has nothing to divide. But several of
them divide the text among each other: `a*a*a*a*a*b` takes minutes for 200 letters `a`, and with
three repetitions it takes milliseconds. A possessive repetition, such as `(a+)++`, never gives back
what it has matched, so it tries only one way.
"""

from re import _constants, _parser  # type: ignore[attr-defined]  # nothing public parses a pattern
from typing import Any

_REPETITIONS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_MAX_REPETITIONS = 3
_SINGLE_CHARACTERS = (
    _constants.ANY,
    _constants.IN,
    _constants.LITERAL,
    _constants.NOT_LITERAL,
)


def can_be_slow(pattern: str) -> bool:
    """Return whether the pattern repeats a group, or has too many repetitions.

    Possessive repetitions do not count. Raise re.error if it is not a regular expression.
    """
    parsed = _parser.parse(pattern)
    return _repeats_a_group(parsed) or _count_repetitions(parsed) > _MAX_REPETITIONS


def _repeats_a_group(parsed: Any) -> bool:
    """Return whether any part of a parsed pattern repeats a group."""
    # A parsed pattern consists of nested sequences. The instructions in it are pairs.
    if not isinstance(parsed, (list, tuple, _parser.SubPattern)):
        return False
    parts = list(parsed)
    if len(parts) == 2 and parts[0] in _REPETITIONS:
        _least, most, repeated = parts[1]
        instructions = [instruction for instruction, _ in repeated]
        is_single = len(instructions) == 1 and instructions[0] in _SINGLE_CHARACTERS
        if most > 1 and not is_single:
            return True
    return any(_repeats_a_group(part) for part in parts)


def _count_repetitions(parsed: Any) -> int:
    """Return how many repetitions there are in a parsed pattern whose number is not fixed."""
    if not isinstance(parsed, (list, tuple, _parser.SubPattern)):
        return 0
    parts = list(parsed)
    count = sum(_count_repetitions(part) for part in parts)
    if len(parts) == 2 and parts[0] in _REPETITIONS:
        least, most, _repeated = parts[1]
        if least < most:
            count += 1
    return count
