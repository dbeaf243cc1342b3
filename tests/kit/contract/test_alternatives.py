"""Every member of an alternation has an effect of its own: words that are secret, errors of the system, units."""

import errno
import re
import signal
import unicodedata

import pytest

from sampletool.kit.contract.duration import _UNIT_SECONDS, parse_duration, say_duration
from sampletool.kit.contract.errors import INTERRUPTED
from sampletool.kit.contract.file_errors import _ERRORS_BY_NUMBER, _HINTS_BY_NUMBER, _WRONG_KIND_OF_PATH
from sampletool.kit.contract.mistyped import _DASHES, Mistyped, begins_as_json, check_name, check_path
from sampletool.kit.contract.text import (
    _AUTH_SCHEMES,
    _CONFIDENTIAL,
    _CONFIDENTIAL_PARTS,
    _MISLEADING,
    _PASSWORD_WORDS,
    MASK,
    NOTHING,
    escaped,
    is_secret,
    printable,
    redact,
)
from sampletool.kit.safety.signals import HANDLED

SECRET_KEYS = {
    "token": ("token", "api.tokens", "TOKEN"),
    "password": ("password", "db.Password2"),
    "passwd": ("passwd",),
    "passphrase": ("passphrase",),
    r"\bpass\b": ("pass", "db.pass"),
    r"\bpwd\b": ("pwd", "db.pwd"),
    "secret": ("secret", "client_secret"),
    "dsn": ("dsn", "sentry_dsn"),
    r"creds?\b": ("cred", "creds"),
    r"credentials?\b": ("credential", "credentials"),
    r"\bauth\b": ("auth", "registry.auth"),
    "api[_-]?key": ("api_key", "api-key", "apikey"),
    "private[_-]?key": ("private_key", "private-key", "privatekey"),
    "access[_-]?key": ("access_key", "access-key", "accesskey"),
}
"""For each pattern, keys that it alone finds."""

NOT_SECRET = ("bypass", "compass", "pwds", "credo", "author", "oauthor", "monkey", "keyboard", "public_key", "passing")

MISLEADING = {"Cf": "\u202e", "Cs": "\ud800", "Co": "\ue000", "Zl": "\u2028", "Zp": "\u2029"}


def test_the_patterns_of_secret_keys_are_the_ones_that_are_tested() -> None:
    assert set(_CONFIDENTIAL) == set(SECRET_KEYS)


@pytest.mark.parametrize("pattern", _CONFIDENTIAL)
def test_each_pattern_alone_makes_its_keys_secret(pattern: str) -> None:
    others = "|".join(other for other in _CONFIDENTIAL if other != pattern)

    for key in SECRET_KEYS[pattern]:
        assert is_secret(key)
        assert not re.search(others, key, re.IGNORECASE), f"another pattern finds {key} too, so this one is not tested"


@pytest.mark.parametrize("part", _CONFIDENTIAL_PARTS)
def test_each_part_that_is_looked_for_first_lets_a_secret_key_through(part: str) -> None:
    found_by_it_alone = []
    for keys in SECRET_KEYS.values():
        for key in keys:
            if [other for other in _CONFIDENTIAL_PARTS if other in key.lower()] == [part]:
                found_by_it_alone.append(key)

    assert found_by_it_alone != []
    assert all(map(is_secret, found_by_it_alone))


@pytest.mark.parametrize("key", NOT_SECRET)
def test_a_key_that_only_resembles_a_secret_one_is_shown(key: str) -> None:
    assert not is_secret(key)


def test_the_words_before_a_secret_are_the_ones_that_are_tested() -> None:
    assert _PASSWORD_WORDS == ("password", "passwd", "pwd")
    assert _AUTH_SCHEMES == ("bearer", "basic")


@pytest.mark.parametrize(
    "written", ["{}=hunter2", "{} = 'hunter2 x'", '{}="hunter2 x"', "x;{}=hunter2;y", "a {}=hunter2&b"]
)
@pytest.mark.parametrize("word", [*_PASSWORD_WORDS, "PassWord"])
def test_each_word_for_a_password_hides_what_follows_however_it_is_quoted(word: str, written: str) -> None:
    shown = redact(written.format(word))

    assert "hunter2" not in shown
    assert " x" not in shown
    assert f"{MASK}" in shown


@pytest.mark.parametrize("scheme", [*_AUTH_SCHEMES, "BEARER", "Basic"])
def test_each_scheme_of_an_authorization_hides_its_credentials(scheme: str) -> None:
    assert redact(f"Authorization: {scheme} hunter2 more") == f"Authorization: {scheme} {MASK} more"


@pytest.mark.parametrize(
    "url", ["scheme://u:hunter2@h", "s+x.y-z://u:hunter2@h", "scheme//u:hunter2@h", "//u:hunter2@h"]
)
def test_each_form_of_a_url_hides_its_password(url: str) -> None:
    assert redact(url) == url.replace("hunter2", MASK)


def test_the_misleading_categories_are_the_ones_that_are_tested() -> None:
    assert set(_MISLEADING) == set(MISLEADING)


@pytest.mark.parametrize("category", _MISLEADING)
def test_a_character_of_each_misleading_category_is_escaped(category: str) -> None:
    char = MISLEADING[category]

    assert unicodedata.category(char) == category
    assert printable(f"a{char}b") == f"a{escaped(char)}b"


@pytest.mark.parametrize(("char", "shown"), [("\n", r"\n"), ("\r", r"\r"), ("\t", r"\t"), ("\x1b", r"\x1b")])
def test_a_control_character_is_shown_by_its_usual_name(char: str, shown: str) -> None:
    assert printable(char) == shown


@pytest.mark.parametrize(
    ("char", "shown"),
    [("\udc80", r"\x80"), ("\udcff", r"\xff"), ("\xff", r"\xff"), ("\uffff", r"\uffff"), ("\U00010000", r"\U00010000")],
)
def test_each_range_of_characters_has_a_form_of_its_own(char: str, shown: str) -> None:
    assert escaped(char) == shown


def test_the_errors_of_the_system_are_the_ones_that_are_tested() -> None:
    tested = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT}

    assert set(_ERRORS_BY_NUMBER) == tested
    assert set(_HINTS_BY_NUMBER) == {errno.EMFILE, errno.EFBIG, errno.EBUSY}
    assert {errno.errorcode[number] for number in _WRONG_KIND_OF_PATH} == {
        "ELOOP",
        "EISDIR",
        "ENOTDIR",
        "ENXIO",
        "ENAMETOOLONG",
    }


def test_the_exit_codes_of_signals_are_those_of_the_signals_that_are_handled() -> None:
    assert set(HANDLED) == {signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM}
    assert set(INTERRUPTED) == {128 + number for number in HANDLED}


def test_the_units_of_durations_are_the_ones_that_are_tested() -> None:
    assert _UNIT_SECONDS == {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


@pytest.mark.parametrize("unit", _UNIT_SECONDS)
def test_each_unit_is_read_and_said(unit: str) -> None:
    assert parse_duration(f"2{unit}") == 2 * _UNIT_SECONDS[unit]
    assert say_duration(2 * _UNIT_SECONDS[unit]) == f"2{unit}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [("2 seconds", "2s"), ("2millis", "2ms"), ("2Minutes", "2m"), ("2hours", "2h"), ("2days", "2d"), ("2", "2s")],
)
def test_each_word_for_a_unit_is_answered_with_the_unit(written: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"\(did you mean {meant}\?\)$"):
        parse_duration(written)


def test_the_words_for_nothing_are_the_ones_that_are_tested() -> None:
    assert NOTHING == ("null", "undefined", "None", "NaN", "nil", "[object Object]")


@pytest.mark.parametrize("word", NOTHING)
def test_each_word_for_nothing_is_refused_as_a_name(word: str) -> None:
    with pytest.raises(Mistyped, match="a variable without a value"):
        check_path(word)


def test_the_dashes_that_are_none_are_the_ones_that_are_tested() -> None:
    assert [unicodedata.name(dash) for dash in _DASHES] == [
        "FIGURE DASH",
        "EN DASH",
        "EM DASH",
        "HORIZONTAL BAR",
        "MINUS SIGN",
    ]


@pytest.mark.parametrize("dash", _DASHES)
def test_each_dash_that_is_none_is_refused_at_the_beginning(dash: str) -> None:
    with pytest.raises(Mistyped) as refused:
        check_path(f"{dash}x")

    assert refused.value.suggestion == "Did you mean 'x'?"


@pytest.mark.parametrize("word", ["a\u0430", "a\u03b1", "\u0430\u03b1"], ids=["Cyrillic", "Greek", "neither Latin"])
def test_each_two_alphabets_in_one_word_are_refused(word: str) -> None:
    with pytest.raises(Mistyped, match="several alphabets"):
        check_name(word)


@pytest.mark.parametrize("inside", '"{}[]0-')
@pytest.mark.parametrize("bracket", "{[")
def test_each_beginning_of_json_is_known(bracket: str, inside: str) -> None:
    assert begins_as_json(f" {bracket} {inside}")
