"""Every member of an alternation has an effect of its own, and every pause its real length."""

import errno
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from sampletool.audit import sandbox as module
from sampletool.audit.errors import FailsAlone
from sampletool.audit.failure import _CODE_NAMES, _HOLDER_NAMES, parse_failure
from sampletool.audit.sandbox import _INHERITED_VARIABLES, _WRONG_COMMAND, Sandbox
from sampletool.audit.serialized_run import pause_before_retry
from sampletool.kit.safety.signals import Signals

UNITS = {
    "": 1.0,
    "ms": 0.001,
    "millis": 0.001,
    "milliseconds": 0.001,
    "s": 1.0,
    "sec": 1.0,
    "secs": 1.0,
    "seconds": 1.0,
}


def understood(**answer: Any) -> Any:
    return parse_failure(1, json.dumps(answer), "", shown_output="", other_pids=())


def test_the_alternatives_are_the_ones_that_are_tested() -> None:
    assert _WRONG_COMMAND == (errno.ENOENT, errno.ENOEXEC, errno.EACCES)
    assert _CODE_NAMES == ("code", "errorcode")
    assert set(_INHERITED_VARIABLES) == {
        *("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"),
        *("LD_LIBRARY_PATH", "PYTHONPATH", "VIRTUAL_ENV", "JAVA_HOME"),
    }
    assert _HOLDER_NAMES == (
        "holder",
        "holders",
        "heldby",
        "lockedby",
        "lockholder",
        "lockowner",
        "holderpid",
        "lockpid",
        "owner",
    )


@pytest.mark.parametrize(
    "number", [*_WRONG_COMMAND, errno.EMFILE], ids=lambda number: errno.errorcode[number]
)
def test_each_reason_why_a_command_cannot_be_started_is_told_apart_from_a_fault_of_the_machine(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(module, "Run", fail)
    kind = FailsAlone if number in _WRONG_COMMAND else OSError

    with pytest.raises(kind), Sandbox(Signals()) as sandbox:
        sandbox.launch(["x"])


@pytest.mark.parametrize("name", _CODE_NAMES)
def test_each_name_of_a_code_is_understood(name: str) -> None:
    assert understood(**{name: "BUSY"}).code == "BUSY"


@pytest.mark.parametrize("name", _HOLDER_NAMES)
def test_each_name_of_a_holder_is_understood(name: str) -> None:
    assert understood(**{name: "ann"}).names_holder
    assert not understood(**{name: None}).names_holder


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", ["retryafter", "retryin", "retrydelay"])
def test_each_way_to_say_when_to_come_back_is_understood(name: str, unit: str) -> None:
    assert understood(**{f"{name}{unit}": 1500}).retry_after_seconds == pytest.approx(
        1500 * UNITS[unit]
    )


@pytest.mark.parametrize("word", ["pid", "process", "by"])
def test_each_word_before_a_number_makes_it_a_pid(word: str) -> None:
    assert parse_failure(
        1, f"held {word} 4121", "", shown_output="", other_pids={4121}
    ).names_holder
    assert not parse_failure(1, "held 4121", "", shown_output="", other_pids={4121}).names_holder


@pytest.mark.parametrize(
    ("tries", "least", "most"),
    [(1, 0.2, 0.3), (2, 0.4, 0.6), (8, 25.6, 38.4), (9, 51.2, 60), (50, 60, 60)],
)
def test_a_program_that_does_not_say_when_is_called_again_after_a_growing_pause(
    tmp_path: Path, tries: int, least: float, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").write_text("busy\n")

    pauses = []
    for share in (0, 1):
        monkeypatch.setattr(
            random, "uniform", lambda low, high, share=share: high if share else low
        )
        pauses.append(pause_before_retry(tmp_path / "out", 75, tries))

    assert pauses == pytest.approx([least, most])


@pytest.mark.parametrize(("hint_ms", "pause"), [(1, 0.001), (60_000, 60.0), (60_001, 60.0)])
def test_a_hint_is_followed_for_up_to_a_minute(tmp_path: Path, hint_ms: int, pause: float) -> None:
    (tmp_path / "out").write_text(
        json.dumps({"error": {"code": "LOCK_HELD", "retry_after_ms": hint_ms}})
    )

    assert pause_before_retry(tmp_path / "out", 1, 1) == pause
