"""Calls as agents get them wrong: of every command, with values of every kind in every place."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampletool.kit.testing.schema import described
from sampletool.kit.testing.tool import Tool
from tests.kit.trees import file_states

_ODD = [
    *("", " ", "null", "undefined", "None", "NaN", "[object Object]", "true", "level", "1", "1s", "a=b", "=", "*", "~"),
    *("%2e%2e%2fetc%2fpasswd", "a%20b", "level\n", " level", "l\u0435vel", "\uff4cevel", "\u202e", "a\tb", "\x1b[2J"),
    *("\u2013limit", "-x", "--", "--limit", "-5s", "-1", '{"a": 1}', '{"a": ', "[1, 2", '"level"', "x" * 5000),
    *("..", "../..", "/dev/null", "/", "$(id)", "`id`", "\udcff", "\\", "'", "{key} {value}", "redis://", "after:"),
    *("1e999", "0x10", "\uff11\uff12", "9" * 30, "1_000", " 5", "5 ", "5 s", "5", "0", "a.b..c", "a:1", ":"),
]
_SLOW = ("scratch", "outputs", "files")
"""What takes long if it is right by chance gets one value that is surely wrong; so does a server."""


@st.composite
def calls(draw: st.DrawFn) -> list[str]:
    command = draw(st.sampled_from(sorted(described())))
    entry = described()[command]
    odd = st.sampled_from(_ODD)
    words = []
    for argument in entry["arguments"]:
        words += draw(st.lists(odd, min_size=draw(st.integers(0, 1)), max_size=3 if argument.get("repeatable") else 1))
    for option in draw(st.lists(st.sampled_from(entry["options"]), max_size=3)) if entry["options"] else []:
        words += [option["flags"][0], *([] if option["type"] == "boolean" else [draw(odd)])]
    wrong = ["--lock-timeout=never"] if entry["effect"] in _SLOW or command == "mcp" else []
    return ["--json", "--timeout", "5s", *wrong, *command.split("."), *words]


@settings(database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(call=calls())
def test_whatever_is_called_there_is_one_answer_and_what_is_refused_changes_nothing(
    tool: Tool, tmp_path: Path, call: list[str]
) -> None:
    """That the status is declared and the answer fits the schema is checked for every call."""
    before = file_states(tmp_path)

    ran = tool(*call)

    if ran.stdout[:1] != b"{":
        assert {"--raw", "-h", "--help"} & {*call}
    else:
        assert ran.status == ran.meta["exit_code"] != 1
    if ran.status == 2:
        assert file_states(tmp_path) == before


@pytest.mark.parametrize(
    ("call", "suggestion"),
    [
        (["config", "set", "null", "1"], "Check the script that built this command line."),
        (["config", "set", "a%2Eb", "1"], "'a.b'"),
        (["config", "get", "level\n"], "'level'"),
        (["config", "set", "\uff4cevel=1"], "'level'"),
        (["config", "set", "l\u0435vel=1"], "Check the script that built this command line."),
        (["config", "get", '{"key": "level"}'], "Check the script that built this command line."),
        (["config", "get", "\u2013-global"], "'-global'"),
        (["config", "list", "--session-id", "undefined"], "Check the script that built this command line."),
        (["config", "list", "--session-id", '"monday"'], "'monday'"),
        (["config", "list", "--session-id", " monday"], "'monday'"),
    ],
)
def test_what_was_meant_is_suggested(tool: Tool, workspace: Path, call: list[str], suggestion: str) -> None:
    ran = tool(*call)

    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    assert suggestion in ran.error["suggestion"]
    assert file_states(workspace).keys() == {str(workspace / "tool.toml")}


def test_all_that_is_wrong_is_reported_at_once(tool: Tool, workspace: Path) -> None:
    ran = tool("config", "set", "null=1", "a%20b=2", "jobs=many", "right=1")

    assert [mistake.get("value") for mistake in ran.error["errors"]] == ["null", "a%20b", "many"]
    assert "right" not in (workspace / "tool.toml").read_text()


def test_a_key_that_is_really_called_so_is_written_in_quotes(tool: Tool, workspace: Path) -> None:
    assert tool("config", "set", '"null"', "1").data["effect"] == "created"
    assert tool("config", "get", '"null"').data["value"] == 1


@pytest.mark.parametrize("value", ["null", "undefined", "%20", " x ", '{"a": ', "\u2013", "l\u0435vel"])
def test_a_value_may_be_any_text(tool: Tool, workspace: Path, value: str) -> None:
    tool("config", "set", "a", value)

    assert tool("config", "get", "a").data["value"] == value


@pytest.mark.parametrize(
    ("wrong", "right"), [("5 s", "5s"), ("5sec", "5s"), ("2 Minutes", "2m"), ("30", "30s"), ("100 millis", "100ms")]
)
def test_a_duration_in_other_words_is_suggested_as_it_is_written_here(tool: Tool, wrong: str, right: str) -> None:
    assert f"(did you mean {right}?)" in tool("config", "list", "--lock-timeout", wrong).error["message"]


def test_an_empty_duration_is_a_mistake_like_any_other(tool: Tool) -> None:
    for call in (["log", "--since", ""], ["config", "list", "--lock-timeout", ""]):
        ran = tool(*call)
        assert (ran.status, ran.code) == (2, "USAGE_ERROR"), call
        assert "'' is not a valid duration" in ran.error["message"]
