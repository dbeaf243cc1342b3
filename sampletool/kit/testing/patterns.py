"""Find regular expressions that can take exponential time.

Python tries every way to divide a text among the repetitions of a group. For `(a+)+b`, there are
2**29 ways to divide a text of 30 letters `a`, and neither a signal nor --timeout ends the search.

A repetition of a single character or a set, such as `[a-z]+`, has nothing to divide. A possessive
repetition, such as `(a+)++`, never gives back what it has matched, so it tries only one way.
"""

from re import _constants, _parser  # type: ignore[attr-defined]  # nothing public parses a pattern
from typing import Any

_REPETITIONS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT)
_SINGLE_CHARACTERS = (
    _constants.ANY,
    _constants.IN,
    _constants.LITERAL,
    _constants.NOT_LITERAL,
)


def can_be_slow(pattern: str) -> bool:
    """Return whether the pattern repeats a group, and not possessively.

    Raise re.error if it is not a regular expression.
    """
    return _repeats_a_group(_parser.parse(pattern))


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
