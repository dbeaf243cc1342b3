"""sampletool/kit/global_options.py: options that every command takes, wherever they are."""

from typing import Any

import pytest
import typer

from sampletool.kit.global_options import (
    GLOBAL_OPTIONS,
    checked_by,
    color_in_arguments,
    described_options,
    format_in_arguments,
    take_global_options,
    whole_tool,
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("config get --json", "json"),
        ("--raw config", "raw"),
        ("--format text", "text"),
        ("--format=jsonl get", "jsonl"),
        ("--format yaml", None),
        ("--format", None),
        ("--format text jsonl", "text"),
        ("--formats text", None),
        ("--quiet text", None),
        ("--nope --json", "json"),
        ("-- --json", None),
        ("-- --format text", None),
        ("--format text --json", "text"),
        ("--json --format text", "json"),
        ("", None),
    ],
)
def test_the_first_valid_format_before_two_dashes_counts(words: str, expected: str | None) -> None:
    assert format_in_arguments(words.split()) == expected


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--color never nope", "never"),
        ("nope --color=always", "always"),
        ("--color auto", "auto"),
        ("--color sometimes", None),
        ("--color", None),
        ("--format never", None),
        ("-- --color never", None),
        ("never", None),
    ],
)
def test_the_colors_of_a_wrong_command_line_are_those_of_its_option(
    words: str,
    expected: str | None,
) -> None:
    assert color_in_arguments(words.split()) == expected


def test_the_options_that_were_given_are_taken_out_of_the_parameters() -> None:
    parsed = {"key": "jobs", "quiet": True, "cwd": None, "verbose": 0, "session_id": "s"}

    given = take_global_options(parsed)

    assert given == {"quiet": True, "verbose": 0, "session_id": "s"}
    assert parsed == {"key": "jobs"}


def test_of_json_and_format_the_last_one_wins() -> None:
    assert take_global_options({"json": True, "format": "text"}) == {"format": "text"}
    assert take_global_options({"format": "text", "json": True}) == {"format": "json"}
    assert take_global_options({"json": None, "format": "text"}) == {"format": "text"}


# Options whose values are checked


def _refuse_odd_length(text: str) -> None:
    if len(text) % 2 == 1:
        raise ValueError(f"{text} is odd")


@pytest.mark.parametrize("value", [None, "even", ["even", "also"], []])
def test_a_value_that_passes_the_check_is_returned_as_it_is(value: Any) -> None:
    assert checked_by(_refuse_odd_length)(value) is value


@pytest.mark.parametrize("value", ["odd", ["even", "odd"], ["odd", "even"]])
def test_each_value_is_checked_and_the_message_is_that_of_the_check(value: Any) -> None:
    with pytest.raises(typer.BadParameter) as caught:
        checked_by(_refuse_odd_length)(value)

    assert caught.value.message == "odd is odd"


# What the help and the manifest say about them


def test_every_global_option_has_its_flags_and_its_type() -> None:
    assert {tuple(option["flags"]): option["type"] for option in described_options()} == {
        ("--json",): "boolean",
        ("--format",): "choice",
        ("--fields",): "string",
        ("--color",): "choice",
        ("--quiet", "-q"): "boolean",
        ("--verbose", "-v"): "boolean",
        ("--session-id",): "string",
        ("--cwd", "-C"): "path",
        ("--lock-timeout",): "duration",
        ("--timeout",): "duration",
        ("--help", "-h"): "boolean",
    }


def test_no_global_option_is_required_and_each_has_a_help() -> None:
    described = described_options()

    assert len(described) == len(GLOBAL_OPTIONS)
    assert [option["name"] for option in described if option["required"]] == []
    assert [option["name"] for option in described if not option.get("help")] == []


def test_the_help_has_words_for_the_defaults_that_depend_on_something() -> None:
    shown = {}
    for option in described_options():
        if "shown_default" in option:
            shown[option["name"]] = option["shown_default"]

    assert shown == {
        "format": "text on a terminal, otherwise json",
        "color": "auto",
        "session_id": "a new directory for each command",
        "lock_timeout": "depends on the command",
        "timeout": "no limit",
    }


def test_only_session_ids_are_completed() -> None:
    completed = [option["name"] for option in described_options() if option.get("completion")]

    assert completed == ["session_id"]


def test_the_tool_itself_has_three_more_options() -> None:
    assert list(whole_tool()) == ["version", "show_completion", "install_completion"]
