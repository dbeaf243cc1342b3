"""sampletool/mcp/tools.py: what a caller writes becomes a command line that means just that, or one error."""

import json
import re
import sys
from functools import cache
from inspect import getsource
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sampletool.kit.app import root_command
from sampletool.kit.commands.manifest import find_commands
from sampletool.kit.contract.command_spec import errors_of_every_command
from sampletool.kit.contract.errors import UsageMistakes
from sampletool.kit.contract.response import json_line
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.schema import problems_of
from sampletool.kit.testing.tool import Tool as CommandLine
from sampletool.kit.testing.trees import file_states
from sampletool.mcp.tools import LONGEST, Tool, load_tools

_END = ["--format=jsonl", f"--timeout={LONGEST}", "--"]


@cache
def tools() -> dict[str, Tool]:
    return load_tools()


def test_every_command_is_a_tool_unless_others_write_to_its_stdout_or_it_needs_a_terminal() -> None:
    """They could forge the answer."""
    commands = dict(find_commands(root_command()))

    others = {
        name for name, one in commands.items() if "take_stdout()" in getsource(sys.modules[one.callback.__module__])
    }
    others |= {name for name, one in commands.items() if one.spec.needs_terminal}
    assert {tool.described["command"] for tool in tools().values()} == commands.keys() - others
    assert "config edit" in others
    assert "mcp" in others
    assert all(re.fullmatch(r"[a-z_]{1,64}", name) for name in tools())


def test_arguments_have_the_names_of_the_manifest() -> None:
    tool = tools()["config_set"]
    schema = tool.input_schema()

    named = {param["name"] for param in (*tool.described["arguments"], *tool.described["options"])}
    assert schema["properties"].keys() == named | {"cwd", "session_id", "lock_timeout", "timeout", "fields"}
    assert schema["required"] == ["words"]
    assert schema["properties"]["words"]["type"] == "array"
    assert schema["properties"]["dry_run"]["type"] == "boolean"


def test_no_argument_that_may_be_left_out_stands_before_another() -> None:
    for tool in tools().values():
        required = [param.get("required", False) for param in tool.described["arguments"]]
        assert required == sorted(required, reverse=True), tool.name


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("config_set", {"words": ["a=1", "b", "-x"]}, ["config", "set", *_END, "a=1", "b", "-x"]),
        (
            "config_get",
            {"key": "--help", "in_user_file": True, "reveal": False, "cwd": None},
            ["config", "get", "--format=jsonl", "--global", _END[1], "--", "--help"],
        ),
        ("config_list", {"timeout": None}, ["config", "list", *_END]),
        ("config_list", {"timeout": "-1"}, ["config", "list", "--format=jsonl", "--timeout=-1", "--"]),
    ],
)
def test_nothing_in_a_value_is_taken_for_an_option(name: str, arguments: dict[str, Any], words: list[str]) -> None:
    assert tools()[name].command_line(arguments) == words


def test_the_time_that_the_environment_allows_wins_over_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_TIMEOUT", "5s")

    assert "--timeout=5s" in tools()["config_list"].command_line({})


def test_all_that_is_wrong_is_reported_at_once_and_how_it_would_be_right() -> None:
    with pytest.raises(UsageMistakes) as wrong:
        tools()["config_set"].command_line(
            {"wrods": [], "words": "PW", "dry_run": "PW", "if_version": {"v": "PW"}, "cwd": "\0", "session_id": ["PW"]}
        )

    told = {mistake.param: (mistake.code, mistake.suggestion) for mistake in wrong.value.mistakes}
    assert told == {
        "wrods": ("UNKNOWN_OPTION", "Did you mean 'words'?"),
        "words": ("INVALID_VALUE", 'Write ["..."].'),
        "dry_run": ("INVALID_VALUE", "Write true or false."),
        "if_version": ("INVALID_VALUE", "Write it as a text, with JSON inside where JSON is meant."),
        "cwd": ("INVALID_VALUE", None),
        "session_id": ("INVALID_VALUE", 'Write "...".'),
    }
    assert "PW" not in json_line(wrong.value.describe()).decode()


_SLOW = ("scratch", "outputs", "files")
"""What takes long if it is right by chance gets one value that is surely wrong."""
_TEXTS = st.sampled_from(
    ["", "null", "undefined", "%2e%2e", "-", "--json", "a\n", "\N{CYRILLIC SMALL LETTER A}", "{", "9" * 99]
)
_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=2),
    max_leaves=4,
)


@settings(
    max_examples=scale(60, 2000),
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_whatever_is_asked_there_is_one_answer_and_what_is_refused_changes_nothing(
    tool: CommandLine, tmp_path: Path, data: st.DataObject
) -> None:
    asked = tools()[data.draw(st.sampled_from(sorted(tools())))]
    arguments = data.draw(st.dictionaries(st.sampled_from([*asked.parameters, "unknown"]), _ANYTHING, max_size=3))
    if asked.described["effect"] in _SLOW:
        arguments["lock_timeout"] = "never"
    before = file_states(tmp_path)

    try:
        words = asked.command_line({"timeout": "5s"} | arguments)
    except UsageMistakes:
        return
    ran = tool(*words)
    answer = json.loads(ran.stdout.splitlines()[-1])

    assert problems_of(answer) == []
    codes = {kind.code for kind in errors_of_every_command()} | asked.described["errors"].keys()
    assert answer["ok"] or answer["error"]["code"] in codes
    assert ran.status == answer["meta"]["exit_code"] != 1
    if ran.status == 2:
        assert file_states(tmp_path) == before


@pytest.mark.parametrize(("effect", "reads_only"), [("nothing", True), ("scratch", False), ("server", False)])
def test_a_tool_with_an_effect_of_a_part_does_not_only_read(effect: str, reads_only: bool) -> None:
    described = {**tools()["config_get"].described, "effect": effect}

    assert Tool("order", described, {}).reads_only is reads_only
