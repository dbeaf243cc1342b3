"""A text that tomlkit would parse for too long is told from one that it parses at once."""

import pytest

from sampletool.kit.settings.toml_cost import is_expensive
from sampletool.kit.testing.failing import outcome_of

# The cost is the square of the number of dots, multiplied by the dots of the longest key. The
# highest cost that is allowed is 1,000,000. Dots in headers count half.


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("a.b = 1\n", 1_000),
        ("a.b.c = 1\n", 353),
        ("a.b.c.d = 1\n", 192),
        ("[a.b]\n", 2_000),
        ("[a.b.c]\n", 707),
        ("[[a.b]]\n", 2_000),
        ("x = {a.b = 1}\n", 1_000),
        ("x = {y = 1, a.b = 1}\n", 1_000),
    ],
)
def test_a_text_is_expensive_if_it_has_too_many_dots_in_keys(line: str, most: int) -> None:
    at_the_limit = outcome_of(lambda: is_expensive(line * most))
    beyond_it = outcome_of(lambda: is_expensive(line * (most + 1)))

    assert at_the_limit is False
    assert beyond_it is True


@pytest.mark.parametrize(
    ("first_line", "last_line"),
    [
        ("a.b.c = 1\n", ""),
        ("", "a.b.c = 1\n"),
        ("[a.b.c]\n", ""),
        ("", "[a.b.c]\n"),
    ],
)
def test_the_longest_key_counts_wherever_it_is(first_line: str, last_line: str) -> None:
    """Without the longer key, these 750 lines have a cost of 562,500."""
    lines = "a.b = 1\n" * 750

    is_too_expensive = outcome_of(lambda: is_expensive(first_line + lines + last_line))

    assert is_too_expensive is True


@pytest.mark.parametrize(
    "line",
    [
        "a = 1\n",
        "a = 1.5\n",
        "a = [1.5, 2.5]\n",
        "# a.b.c\n",
        "a = 'a.b.c'\n",
        "'a.b.c' = 1\n",
        "[a]\n",
    ],
)
def test_dots_that_are_not_in_keys_cost_nothing(line: str) -> None:
    is_too_expensive = outcome_of(lambda: is_expensive(line * 5_000))

    assert is_too_expensive is False
