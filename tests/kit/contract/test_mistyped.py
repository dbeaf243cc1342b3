"""sampletool/kit/contract/mistyped.py: probable mistakes are refused as names, and nothing else."""

import unicodedata
from collections.abc import Callable

import pytest

from sampletool.kit.contract import mistyped
from sampletool.kit.contract.mistyped import (
    Mistyped,
    begins_as_json,
    check_name,
    check_path,
    check_text,
)
from sampletool.kit.contract.text import NOTHING

_CHECK_THE_SCRIPT = "Check the script that built this command line."


@pytest.mark.parametrize("word", NOTHING)
def test_the_text_for_an_unset_variable_is_no_path(word: str) -> None:
    with pytest.raises(Mistyped) as caught:
        check_path(word)

    assert str(caught.value) == f"'{word}' looks like an unset variable"
    assert caught.value.value == word
    assert caught.value.suggestion == _CHECK_THE_SCRIPT


@pytest.mark.parametrize(
    ("text", "problem", "meant"),
    [
        ("level\n", "starts or ends with whitespace", "level"),
        (" level", "starts or ends with whitespace", "level"),
        ("a%2Fb", "is percent-encoded", "a/b"),
        ("a%c3%a9", "is percent-encoded", "a\u00e9"),
    ],
)
def test_a_path_that_is_probably_mistyped_is_refused_with_the_path_that_was_meant(
    text: str, problem: str, meant: str
) -> None:
    with pytest.raises(Mistyped, match=problem) as caught:
        check_path(text)

    assert caught.value.suggestion == f"Did you mean '{meant}'?"


@pytest.mark.parametrize("check", [check_name, check_text])
def test_a_name_or_text_that_is_not_utf8_is_refused(check: Callable[[str], None]) -> None:
    with pytest.raises(Mistyped) as caught:
        check("caf\udce9")

    assert str(caught.value) == "'caf\\xe9' is not UTF-8 text"
    assert caught.value.suggestion == _CHECK_THE_SCRIPT


def test_a_path_or_text_may_be_anything_else() -> None:
    check_path("caf\udce9")
    check_text(" café\n%20☃ ")


def test_a_dash_is_no_name_because_it_means_stdin_elsewhere() -> None:
    with pytest.raises(Mistyped, match="'-' means stdin elsewhere, and is not read here"):
        check_name("-")

    # A name can still begin with one.
    check_name("-x")


_DASHES = {
    "\u2012": "FIGURE DASH",
    "\u2013": "EN DASH",
    "\u2014": "EM DASH",
    "\u2015": "HORIZONTAL BAR",
    "\u2212": "MINUS SIGN",
}


@pytest.mark.parametrize("dash", _DASHES, ids=_DASHES.values())
def test_a_dash_of_a_word_processor_at_the_beginning_is_refused(dash: str) -> None:
    with pytest.raises(Mistyped, match="starts with a dash that is not a plain `-`") as caught:
        check_path(f"{dash}{dash}x")

    assert unicodedata.name(dash) == _DASHES[dash]
    assert caught.value.suggestion == "Did you mean 'x'?"


def test_every_dash_is_tested() -> None:
    assert set(mistyped._DASHES) == set(_DASHES)


@pytest.mark.parametrize("text", ["[2026]/cafe\u0301/\uff4c.json", "a\u2013b", "100%", "%zz", ""])
def test_a_path_may_have_any_letters(text: str) -> None:
    check_path(text)


@pytest.mark.parametrize(
    ("text", "problem", "meant"),
    [
        ("level ", "starts or ends with whitespace", "level"),
        ("../level", "contains `../`, so it is a path", "level"),
        ("../../a/../level", "contains `../`, so it is a path", "a/level"),
        ("a/..", "contains `../`, so it is a path", "a/"),
        ("%2e%2e%2flevel", "is percent-encoded", "level"),
        ("level?limit=5&after=x", "contains a query", "level"),
        ('"level"', "is JSON, not a name", "level"),
        ("\uff4c\uff45vel", "contains letters in an unusual form", "level"),
        ("cafe\u0301", "contains letters in an unusual form", "caf\u00e9"),
    ],
)
def test_a_name_that_is_probably_mistyped_is_refused_with_the_name_that_was_meant(
    text: str, problem: str, meant: str
) -> None:
    with pytest.raises(Mistyped, match=problem) as caught:
        check_name(text)

    assert caught.value.suggestion == f"Did you mean '{meant}'?"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("undefined", "looks like an unset variable"),
        ('{"a": 1', "is JSON, not a name"),
        ('["a"]', "is JSON, not a name"),
        ('""', "is JSON, not a name"),
        # These mean another text that is refused.
        (" null", "starts or ends with whitespace"),
        ("%6eull", "is percent-encoded"),
        ('"null"', "is JSON, not a name"),
        ("..", "contains `../`"),
    ],
)
def test_where_it_is_not_known_which_name_was_meant_the_hint_is_to_check_the_script(
    text: str,
    problem: str,
) -> None:
    with pytest.raises(Mistyped, match=problem) as caught:
        check_name(text)

    assert caught.value.suggestion == _CHECK_THE_SCRIPT


@pytest.mark.parametrize(
    "word",
    ["a\u0430", "a\u03b1", "\u0430\u03b1", "level-l\u0435vel"],
    ids=["Latin and Cyrillic", "Latin and Greek", "Cyrillic and Greek", "the second word"],
)
def test_a_word_with_letters_of_two_alphabets_is_refused(word: str) -> None:
    with pytest.raises(Mistyped, match="letters from different alphabets in one word") as caught:
        check_name(word)

    assert caught.value.suggestion == _CHECK_THE_SCRIPT


@pytest.mark.parametrize(
    "text",
    [
        "level",
        "-x",
        "run-7",
        "100%",
        "\u0441\u0447\u0451\u0442",
        "\u65e5\u672cabc",
        "ms-\u043c\u0441",
        "a/b:c",
        "[x]",
        'a"',
        '"a',
        "nullable",
        "a..b",
        "...",
        "v1..v2",
        "..x",
        "why?",
        "issue#12",
    ],
)
def test_an_ordinary_name_is_accepted(text: str) -> None:
    check_name(text)


@pytest.mark.parametrize("inside", ['"', "{", "}", "[", "]", "0", "9", "-"])
@pytest.mark.parametrize("bracket", ["{", "["])
def test_a_bracket_followed_by_what_json_allows_is_json(bracket: str, inside: str) -> None:
    assert begins_as_json(f"{bracket}{inside}")
    assert begins_as_json(f" {bracket}\n{inside} and then anything")


@pytest.mark.parametrize("text", ["[urgent] x", "{name}", "a [1]", "1", '"a"', "["])
def test_other_text_is_not_json(text: str) -> None:
    assert not begins_as_json(text)
