"""Command lines as agents get them wrong: every command, with odd values in every place."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampletool.kit.testing.schema import described
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import file_states

_EMPTY = ("", " ", "null", "undefined", "None", "NaN", "[object Object]")
_ENCODED = ("%2e%2e%2fetc%2fpasswd", "a%20b", "level\n", " level", "a\tb", "\x1b[2J", "\udcff")
_LOOKALIKE = ("l\u0435vel", "\uff4cevel", "\u202e", "\u2013limit", "\uff11\uff12")
_OPTIONS = ("-x", "--", "--limit", "-5s", "-1", "--help", "--color")
_JSON = ('{"a": 1}', '{"a": ', "[1, 2", '"level"', "true", "{key} {value}")
_PATHS = ("..", "../..", "/dev/null", "/", "~", "*", "$(id)", "`id`", "\\", "'")
_NUMBERS = ("1e999", "0x10", "9" * 30, "1_000", " 5", "5 ", "5 s", "5", "0", "1s")
_NAMES = ("level", "1", "a=b", "=", "a.b..c", "a:1", ":", "after:", "redis://", "x" * 5000)
_ODD_VALUES = (
    *_EMPTY,
    *_ENCODED,
    *_LOOKALIKE,
    *_OPTIONS,
    *_JSON,
    *_PATHS,
    *_NUMBERS,
    *_NAMES,
)

_SLOW_EFFECTS = ("scratch", "outputs", "files")
"""The effects of commands that run for long. They get one option with a wrong value."""

_TEXT_OPTIONS = {"--raw", "-h", "--help", "-V", "--version"}
"""With one of these, the output may be text although JSON is requested."""


@st.composite
def odd_values_of(draw: st.DrawFn, argument: dict[str, Any]) -> list[str]:
    """Generate the values of one argument: none, one, or more than it takes."""
    fewest = draw(st.integers(0, 1))
    most = 3 if argument.get("repeatable") else 1
    return draw(st.lists(st.sampled_from(_ODD_VALUES), min_size=fewest, max_size=most))


@st.composite
def odd_option(draw: st.DrawFn, options: list[dict[str, Any]]) -> list[str]:
    """Generate one of the options, with its value if it takes one."""
    option = draw(st.sampled_from(options))
    words = [option["flags"][0]]
    if option["type"] != "boolean":
        words.append(draw(st.sampled_from(_ODD_VALUES)))
    return words


@st.composite
def odd_command_lines(draw: st.DrawFn) -> list[str]:
    """Generate a command line of any command."""
    command = draw(st.sampled_from(sorted(described())))
    manifest = described()[command]
    words = ["--json", "--timeout", "5s"]
    if manifest["effect"] in _SLOW_EFFECTS or command == "mcp":
        words.append("--lock-timeout=never")
    words += command.split(".")
    for argument in manifest["arguments"]:
        words += draw(odd_values_of(argument))
    if manifest["options"]:
        for option in draw(st.lists(odd_option(manifest["options"]), max_size=3)):
            words += option
    return words


@settings(database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(args=odd_command_lines())
def test_every_command_line_has_one_response_and_a_rejected_one_changes_nothing(
    tool: Tool,
    tmp_path: Path,
    args: list[str],
) -> None:
    before = file_states(tmp_path)

    # This also checks that the response fits its schema, and that the error is declared.
    ran = tool(*args)

    if ran.stdout.startswith(b"{"):
        assert ran.status == ran.meta["exit_code"]
        assert ran.status != 1
    else:
        assert not _TEXT_OPTIONS.isdisjoint(args)
    if ran.status == 2:
        assert file_states(tmp_path) == before


@pytest.mark.parametrize(
    ("args", "suggestion"),
    [
        (["config", "set", "null", "1"], "Check the script that built this command line."),
        (["config", "set", "a%2Eb", "1"], "'a.b'"),
        (["config", "get", "level\n"], "'level'"),
        (["config", "set", "\uff4cevel=1"], "'level'"),
        (["config", "set", "l\u0435vel=1"], "Check the script that built this command line."),
        (["config", "get", '{"key": "level"}'], "Check the script that built this command line."),
        (["config", "get", "\u2013-global"], "'-global'"),
        (
            ["config", "list", "--session-id", "undefined"],
            "Check the script that built this command line.",
        ),
        (["config", "list", "--session-id", '"monday"'], "'monday'"),
        (["config", "list", "--session-id", " monday"], "'monday'"),
    ],
)
def test_a_mistyped_name_is_rejected_with_the_name_that_was_probably_meant(
    tool: Tool,
    workspace: Path,
    args: list[str],
    suggestion: str,
) -> None:
    ran = tool(*args)

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert suggestion in ran.error["suggestion"]
    assert file_states(workspace).keys() == {str(workspace / "tool.toml")}


def test_all_wrong_values_are_reported_at_once_and_no_value_is_saved(
    tool: Tool,
    workspace: Path,
) -> None:
    ran = tool("config", "set", "null=1", "a%20b=2", "jobs=many", "right=1")

    assert [mistake.get("value") for mistake in ran.error["errors"]] == ["null", "a%20b", "many"]
    assert "right" not in (workspace / "tool.toml").read_text()


@pytest.mark.usefixtures("workspace")
def test_a_key_with_a_misleading_name_works_in_quotes(tool: Tool) -> None:
    changed = tool("config", "set", '"null"', "1")

    assert changed.data["effect"] == "created"
    assert tool("config", "get", '"null"').data["value"] == 1


@pytest.mark.usefixtures("workspace")
@pytest.mark.parametrize(
    "value",
    ["null", "undefined", "%20", " x ", '{"a": ', "\u2013", "l\u0435vel"],
)
def test_a_value_can_be_any_text(tool: Tool, value: str) -> None:
    tool("config", "set", "a", value)

    assert tool("config", "get", "a").data["value"] == value


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("5 s", "5s"),
        ("5sec", "5s"),
        ("2 Minutes", "2m"),
        ("30", "30s"),
        ("100 millis", "100ms"),
    ],
)
def test_a_duration_in_other_words_is_rejected_with_the_right_form(
    tool: Tool,
    wrong: str,
    right: str,
) -> None:
    ran = tool("config", "list", "--lock-timeout", wrong)

    assert f"(did you mean {right}?)" in ran.error["message"]


@pytest.mark.parametrize(
    "args",
    [["log", "--since", ""], ["config", "list", "--lock-timeout", ""]],
)
def test_an_empty_duration_is_a_usage_error(tool: Tool, args: list[str]) -> None:
    ran = tool(*args)

    assert (ran.status, ran.code) == (2, "USAGE_ERROR")
    assert "'' is not a valid duration" in ran.error["message"]
