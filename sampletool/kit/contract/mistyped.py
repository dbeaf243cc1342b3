"""Refuse what scripts and people pass by mistake as a name, and propose what they probably meant.

These checks are for names, keys, ids and the paths of new files. Free text may be anything that is
UTF-8. But if it begins as JSON, it is refused if it is broken JSON (see begins_as_json).
"""

import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import unquote

from .text import NOTHING, quoted

_DASHES = "\u2012\u2013\u2014\u2015\u2212"
"""The dashes that word processors and web pages put in place of `-`."""

_ALPHABETS = frozenset({"LATIN", "CYRILLIC", "GREEK"})
"""The alphabets with letters that look the same. They are the first words of Unicode names."""


_PARENT_DIRECTORY = re.compile(r"(?:^|(?<=/))\.\.(?:/|$)")
"""The part `../` of a path. It leads a program that uses names as paths to another directory."""

_QUERY = re.compile(r"\?[\w.-]+=.*")
"""The end of a URL, such as `?limit=5`, which a script may have left in a name."""


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


class _Problem(NamedTuple):
    """Why a text is refused, as the end of a sentence, and what was probably meant."""

    problem: str
    meant: str = ""


_FindProblem = Callable[[str], _Problem | None]


def check_path(text: str) -> None:
    """Raise Mistyped unless the text can be the path of a new file."""
    _check(text, _find_problem_of_path)


def check_name(text: str) -> None:
    """Raise Mistyped unless the text can be a name."""
    _check(text, _find_problem_of_name)


def check_text(text: str) -> None:
    """Raise Mistyped unless the text is UTF-8, so that it can be stored as it is."""
    _check(text, _find_problem_of_text)


def _check(text: str, find_problem: _FindProblem) -> None:
    """Raise Mistyped if the text has a problem."""
    found = find_problem(text)
    if found is None:
        return
    meant = _first_acceptable(found.meant, find_problem)
    raise Mistyped(f"{quoted(text)} {found.problem}", text, meant)


def _first_acceptable(meant: str, find_problem: _FindProblem) -> str:
    """Return the proposal, or "" if there is none.

    A proposal can have a problem as well: `%20null` means ` null`, which means `null`, which is
    refused. A program that sends such a proposal back would be refused again and again.
    """
    while meant:
        found = find_problem(meant)
        if found is None:
            return meant
        meant = found.meant
    return ""


def _find_problem_of_path(text: str) -> _Problem | None:
    """Return why the text cannot be the path of a new file, or None if it can."""
    if text in NOTHING:
        return _Problem("looks like an unset variable")
    without_space = text.strip()
    if text != without_space:
        return _Problem("starts or ends with whitespace", without_space)
    without_dashes = text.lstrip(_DASHES)
    if text != without_dashes:
        return _Problem("starts with a dash that is not a plain `-`", without_dashes)
    if re.search("%[0-9A-Fa-f]{2}", text):
        return _Problem("is percent-encoded", unquote(text))
    return None


def _find_problem_of_text(text: str) -> _Problem | None:
    """Return why the text cannot be stored, or None if it can."""
    try:
        text.encode()
    except UnicodeEncodeError:
        # Python has read each byte that is not UTF-8 as a lone surrogate.
        return _Problem("is not UTF-8 text")
    return None


def _find_problem_of_name(text: str) -> _Problem | None:
    """Return why the text cannot be a name, or None if it can."""
    # A path may have any bytes, but a name is stored and printed as text.
    questions = (
        _find_problem_of_text,
        _find_problem_of_path,
        _find_other_notation,
        _find_unusual_letters,
    )
    for question in questions:
        problem = question(text)
        if problem is not None:
            return problem
    return None


def _find_other_notation(text: str) -> _Problem | None:
    """Return why the text means stdin, a path, a URL or JSON. Return None if it does not."""
    if text == "-":
        return _Problem("means stdin elsewhere, and is not read here")
    without_parents = _PARENT_DIRECTORY.sub("", text)
    if text != without_parents:
        return _Problem("contains `../`, so it is a path and not a name", without_parents)
    without_query = _QUERY.sub("", text)
    if text != without_query:
        return _Problem("contains a query, like a URL", without_query)
    is_json_string = text.startswith('"') and text.endswith('"')
    if is_json_string:
        return _Problem("is JSON, not a name", text.strip('"'))
    if begins_as_json(text):
        return _Problem("is JSON, not a name")
    return None


def _find_unusual_letters(text: str) -> _Problem | None:
    """Return which letters look like others, or None if there are none."""
    usual_letters = unicodedata.normalize("NFKC", text)
    if text != usual_letters:
        return _Problem("contains letters in an unusual form", usual_letters)
    if any(_mixes_alphabets(word) for word in re.findall(r"\w+", text)):
        return _Problem("mixes letters from different alphabets in one word")
    return None


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
