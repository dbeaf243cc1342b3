"""Each member of a list of alternatives is tested: system errors, signals, units."""

import errno
import signal

import pytest

from sampletool.kit.contract.duration import _UNIT_SECONDS, parse_duration, say_duration
from sampletool.kit.contract.errors import INTERRUPTED
from sampletool.kit.contract.file_errors import (
    _ERRORS_BY_NUMBER,
    _HINTS_BY_NUMBER,
    _WRONG_KIND_OF_PATH,
)
from sampletool.kit.safety.signals import HANDLED


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
def test_each_unit_is_parsed_and_shown(unit: str) -> None:
    assert parse_duration(f"2{unit}") == 2 * _UNIT_SECONDS[unit]
    assert say_duration(2 * _UNIT_SECONDS[unit]) == f"2{unit}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2 seconds", "2s"),
        ("2millis", "2ms"),
        ("2Minutes", "2m"),
        ("2hours", "2h"),
        ("2days", "2d"),
        ("2", "2s"),
    ],
)
def test_the_message_about_a_word_for_a_unit_proposes_the_unit(written: str, meant: str) -> None:
    with pytest.raises(ValueError, match=rf"\(did you mean {meant}\?\)$"):
        parse_duration(written)
