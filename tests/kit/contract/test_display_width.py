"""sampletool/kit/contract/display_width.py: text is measured in columns of a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wcwidth import wcswidth

from sampletool.kit.contract.display_width import cut, display_width, wrap

_PRINTABLE = st.text().filter(str.isprintable)


@pytest.mark.parametrize(
    ("text", "width"),
    [("", 0), ("abc", 3), ("\u65e5\u672c", 4), ("cafe\u0301", 4), ("\U0001f44d", 2)],
)
def test_the_width_is_that_on_a_terminal(text: str, width: int) -> None:
    assert display_width(text) == width


@given(_PRINTABLE, st.integers(0, 30))
def test_a_text_is_cut_to_its_beginning(text: str, width: int) -> None:
    beginning = cut(text, width)

    assert text.startswith(beginning)
    assert wcswidth(beginning) <= width


@pytest.mark.parametrize("word", ["word", "\u65e5\u672c", "cafe\u0301"])
def test_lines_are_filled_and_none_is_too_wide(word: str) -> None:
    width = 23
    lines = wrap(f"{word} " * 40, width, "* ", "  ")

    assert " ".join(lines).split() == ["*", *[word] * 40]
    for line in lines:
        assert wcswidth(line) <= width
    for line in lines[:-1]:
        assert wcswidth(f"{line} {word}") > width


@pytest.mark.parametrize("accent", ["", "\u0301"])
def test_a_word_is_not_broken_even_if_it_is_too_wide(accent: str) -> None:
    word = f"--one{accent}-long-option-of-a-command"

    assert wrap(f"a {word} b", 20, "", "") == ["a", word, "b"]
