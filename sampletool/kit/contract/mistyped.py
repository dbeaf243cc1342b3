"""Refuse what scripts and people pass by mistake as a name, and propose what they probably meant.

These checks are for names, keys, ids and the paths of new files. Free text may be anything. But if
it begins as JSON, it is refused if it is broken JSON (see begins_as_json).
"""

import re
import unicodedata
from urllib.parse import unquote

from .text import NOTHING, quoted

_DASHES = "\u2012\u2013\u2014\u2015\u2212"
"""The dashes that word processors and web pages put in place of `-`."""

_ALPHABETS = frozenset({"LATIN", "CYRILLIC", "GREEK"})
"""The alphabets with letters that look the same. They are the first words of Unicode names."""


class Mistyped(ValueError):
    """A text is probably not the name that the caller meant."""

    def __init__(self, problem: str, text: str, meant: str = "") -> None:
        """Describe the problem. `meant` is the name that was probably meant, if it is known."""
        super().__init__(problem)
        self.value = text
        if meant:
            self.suggestion = f"Did you mean {quoted(meant)}?"
        else:
            self.suggestion = "Check the script that built this command line."


def check_path(text: str) -> None:
    """Raise Mistyped unless the text can be the path of a new file."""
    if text in NOTHING:
        raise Mistyped(f"{quoted(text)} looks like an unset variable", text)
    without_space = text.strip()
    if text != without_space:
        raise Mistyped(f"{quoted(text)} starts or ends with whitespace", text, without_space)
    without_dashes = text.lstrip(_DASHES)
    if text != without_dashes:
        problem = "starts with a dash that is not a plain `-`"
        raise Mistyped(f"{quoted(text)} {problem}", text, without_dashes)
    if re.search("%[0-9A-Fa-f]{2}", text):
        raise Mistyped(f"{quoted(text)} is percent-encoded", text, unquote(text))


def check_name(text: str) -> None:
    """Raise Mistyped unless the text can be a name."""
    check_path(text)
    is_json_string = text.startswith('"') and text.endswith('"')
    if is_json_string:
        raise Mistyped(f"{quoted(text)} is JSON, not a name", text, text.strip('"'))
    if begins_as_json(text):
        raise Mistyped(f"{quoted(text)} is JSON, not a name", text)
    usual_letters = unicodedata.normalize("NFKC", text)
    if text != usual_letters:
        raise Mistyped(f"{quoted(text)} contains letters in an unusual form", text, usual_letters)
    if any(_mixes_alphabets(word) for word in re.findall(r"\w+", text)):
        raise Mistyped(f"{quoted(text)} mixes letters from different alphabets in one word", text)


def _mixes_alphabets(word: str) -> bool:
    """Return whether a word has letters of two alphabets, some of which look the same."""
    alphabets = set()
    for char in word:
        if char.isalpha():
            first_word_of_name, _, _ = unicodedata.name(char, "").partition(" ")
            alphabets.add(first_word_of_name)
    return len(alphabets & _ALPHABETS) > 1


def begins_as_json(text: str) -> bool:
    """Return whether the text begins as an object or an array, even if the rest is broken."""
    return re.match(r'\s*[\[{]\s*["{}\[\]0-9-]', text) is not None
