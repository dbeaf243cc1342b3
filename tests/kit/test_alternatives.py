"""Each member of a list of alternatives is tested.

The lists are the positions of a switch, variables, words for nothing, signals, and members of a
line of the log.
"""

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.call_log import NAMES
from sampletool.kit.colors import wants_color
from sampletool.kit.commands.log import _TYPES, Call, read_calls
from sampletool.kit.context import in_ci
from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.contract.response import FORMATS
from sampletool.kit.global_options import format_in_arguments
from sampletool.kit.session_id import check_session_id
from sampletool.kit.settings.kinds import KINDS, KnownSetting, read_value
from sampletool.kit.settings.known import SETTINGS
from sampletool.kit.settings.toml_key import parse_key

SWITCHES: tuple[tuple[object, bool], ...] = (
    ("on", True),
    ("off", False),
    (True, True),
    (False, False),
)

VALUES: dict[str, tuple[object, ...]] = {
    "choice": FORMATS,
    "count": (1, "7"),
    "duration": ("0", "30s", 0),
    "pattern": ("EUR", "USD"),
    "switch": tuple(value for value, _ in SWITCHES),
    "text": ("x",),
}
"""For each kind of setting, values that it can have."""

INVALID_VALUES: dict[str, tuple[object, ...]] = {
    "choice": ("raw", "yaml", ""),
    "count": (0, "0", -1, 1.5, "x", True),
    "duration": ("5", -1, "x"),
    "pattern": ("eur", "EURO", "", 1),
    "switch": ("yes", "", 2, "On"),
    "text": ("", 1),
}

LOGGED: dict[str, Any] = {
    "at": "2026-01-01T00:00:00Z",
    "command": "config.set",
    "exit_code": 0,
    "duration_ms": 1,
    "request_id": "01",
    "cwd": "/w",
    "session_id": "s",
    "trace_id": "t",
    "code": "X",
    "effect": "updated",
    "dry_run": True,
    "about": ["key"],
}
"""A line of the log with all of its members."""


REASONS = {
    "choice": "is not json, jsonl or text",
    "count": "is not a whole number of at least 1",
    "duration": "is not a valid duration",
    "pattern": "is not three capital letters",
    "switch": "is not on or off",
    "text": "is not text that is not empty",
}
"""For each kind of setting, why an invalid value is refused."""


def setting_of(kind: str) -> KnownSetting:
    """Return a setting of this kind."""
    return {
        "kind": kind,
        "default": "auto",
        "help": "Help.",
        "choices": FORMATS,
        "pattern": "[A-Z]{3}",
        "pattern_help": "three capital letters",
    }


def test_the_kinds_of_settings_are_the_ones_that_are_tested() -> None:
    assert set(KINDS) == set(VALUES) == set(INVALID_VALUES) == set(REASONS)
    assert {facts["kind"] for facts in SETTINGS.values()} <= set(KINDS)
    assert FORMATS == ("json", "jsonl", "text")


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_setting_takes_its_values_and_no_others(kind: str) -> None:
    setting = setting_of(kind)

    for value in VALUES[kind]:
        read_value(setting, value)
    for value in INVALID_VALUES[kind]:
        with pytest.raises(ValueError, match=REASONS[kind]):
            read_value(setting, value)


@pytest.mark.parametrize(("value", "meant"), SWITCHES)
def test_each_position_of_a_switch_is_understood(value: object, meant: bool) -> None:
    assert read_value(setting_of("switch"), value) is meant


@pytest.mark.parametrize(
    ("value", "is_ci"),
    [("", False), ("0", False), ("false", False), ("FALSE", False), ("1", True)],
)
def test_the_variable_ci_says_whether_a_person_reads_the_output(
    value: str, is_ci: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI", value)

    assert in_ci() is is_ci


@pytest.mark.parametrize(
    ("environ", "is_wanted"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": "0"}, False),
        ({"FORCE_COLOR": "false"}, False),
        ({"FORCE_COLOR": ""}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"NO_COLOR": "", "FORCE_COLOR": "1"}, True),
    ],
)
def test_a_variable_decides_about_colour_if_there_is_no_terminal(
    environ: dict[str, str], is_wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    read_end, write_end = os.pipe()

    wanted = wants_color(write_end, None)

    os.close(read_end)
    os.close(write_end)
    assert wanted is is_wanted


@pytest.mark.parametrize(
    ("args", "form"),
    [
        (["--json"], "json"),
        (["--raw"], "raw"),
        (["--format=text"], "text"),
        (["--format", "jsonl"], "jsonl"),
        (["x", "--json", "y"], "json"),
        (["--", "--json"], None),
        (["--jsonx"], None),
        (["x--json"], None),
        (["--format"], None),
    ],
)
def test_the_format_is_recognized_in_a_command_line_that_cannot_be_parsed(
    args: list[str], form: str | None
) -> None:
    assert format_in_arguments(args) == form


@pytest.mark.parametrize("word", ["null", "undefined", "None", "NaN", "nil", "[object Object]"])
def test_each_word_for_nothing_is_neither_a_key_nor_a_session(word: str) -> None:
    with pytest.raises(ValueError, match="looks like an unset variable"):
        parse_key(word)
    with pytest.raises(InvalidValues):
        check_session_id(word, "--session-id")


def test_the_members_of_a_line_of_the_log_are_the_ones_that_are_tested() -> None:
    assert [field.name for field in fields(Call)] == list(LOGGED)
    assert {"exit_code": int, "duration_ms": int, "dry_run": bool, "about": list} == _TYPES


@pytest.mark.parametrize("member", LOGGED)
def test_a_line_with_a_member_of_another_type_is_skipped(tmp_path: Path, member: str) -> None:
    wrong: dict[str, Any] = {**LOGGED, member: {"not": "a text, a number, a boolean or a list"}}
    lines = [json.dumps(LOGGED), json.dumps(wrong), json.dumps({**LOGGED, "about": [1]})]
    (tmp_path / NAMES[0]).write_text("".join(f"{line}\n" for line in lines))

    assert [call.request_id for call in read_calls(tmp_path)] == ["01"]
