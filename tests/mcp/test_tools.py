"""sampletool/mcp/tools.py: the commands as tools, and how much the list of them costs."""

import json
import re
import sys
from collections.abc import Sequence
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
from sampletool.mcp.parameters import DEFAULT_TIMEOUT, Parameter
from sampletool.mcp.tools import Tool, load_tools
from tests.mcp.test_arguments import parameter

_END = [f"--timeout={DEFAULT_TIMEOUT}", "--"]


@cache
def tools() -> dict[str, Tool]:
    """Return all tools, as a server offers them with --all."""
    return load_tools(offer_all=True)


def test_every_command_is_a_tool_unless_it_writes_to_stdout_or_needs_a_terminal() -> None:
    """A program whose output comes before the response could forge the response."""
    commands = dict(find_commands(root_command()))

    others = set()
    for name, command in commands.items():
        source = getsource(sys.modules[command.callback.__module__])
        takes_stdout = command.spec.takes_stdout or "take_stdout()" in source
        if takes_stdout or command.spec.needs_terminal:
            others.add(name)
    assert {tool.command for tool in tools().values()} == commands.keys() - others
    assert {"config edit", "mcp"} <= others
    assert all(re.fullmatch(r"[a-z_]{1,64}", name) for name in tools())
    assert [tool.name for tool in tools().values()] == [*tools()]


def test_each_parameter_has_a_description_and_each_tool_names_the_members_of_its_data() -> None:
    for tool in tools().values():
        for name, schema in tool.input_schema()["properties"].items():
            assert schema.get("description"), f"{tool.name}: {name}"
        data = tool.output_schema()["properties"]["data"]
        objects = data.get("anyOf", [data])
        assert any(each.get("properties") for each in objects), tool.name


def test_no_tool_offers_to_select_fields() -> None:
    """A response with only some fields does not fit the schema, so clients threw it away."""
    for tool in tools().values():
        names = {parameter.name for parameter in tool.parameters}
        assert names.isdisjoint({"fields", "format", "json", "raw", "allow_empty"}), tool.name


def test_a_tool_has_the_parameters_of_its_command() -> None:
    schema = tools()["config_set"].input_schema()

    properties = {"words", "global", "string", "if_version", "dry_run"}
    common = {"cwd", "session_id", "lock_timeout", "timeout"}
    assert schema["properties"].keys() == properties | common
    assert schema["required"] == ["words"]
    assert schema["properties"]["words"]["type"] == "array"
    assert schema["properties"]["dry_run"]["type"] == "boolean"


def test_names_of_parameters_are_unique() -> None:
    for tool in tools().values():
        names: list[str] = []
        for each in tool.parameters:
            names += [each.name, *each.aliases]
        assert len(names) == len(set(names)), tool.name


def test_no_optional_argument_comes_before_a_required_one() -> None:
    for tool in tools().values():
        required = [param.get("required", False) for param in tool.manifest["arguments"]]
        assert required == sorted(required, reverse=True), tool.name


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        (
            "config_set",
            {"words": ["a=1", "b", "-x"]},
            ["config", "set", *_END, "a=1", "b", "-x"],
        ),
        (
            "config_get",
            {"key": "--help", "global": True, "reveal": False, "cwd": None},
            ["config", "get", "--global", *_END, "--help"],
        ),
        ("config_list", {"timeout": None}, ["config", "list", *_END]),
        ("config_list", {"timeout": "-1"}, ["config", "list", "--timeout=-1", "--"]),
    ],
)
def test_no_value_is_taken_for_an_option(
    name: str,
    arguments: dict[str, Any],
    words: list[str],
) -> None:
    assert tools()[name].command_line(arguments) == words


def test_the_time_limit_of_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_TIMEOUT", "5s")

    assert "--timeout=5s" in tools()["config_list"].command_line({})


def test_all_mistakes_are_reported_at_once_without_the_values() -> None:
    with pytest.raises(UsageMistakes) as wrong:
        tools()["config_set"].command_line(
            {
                "wrods": [],
                "words": "PW",
                "dry_run": "PW",
                "if_version": {"v": "PW"},
                "cwd": "\0",
                "session_id": ["PW"],
            }
        )

    told = {mistake.param: (mistake.code, mistake.suggestion) for mistake in wrong.value.mistakes}
    as_string = "Write it as a string. If JSON is meant, write the JSON into the string."
    assert told == {
        "wrods": ("UNKNOWN_OPTION", "Did you mean 'words'?"),
        "words": ("INVALID_VALUE", 'Write ["..."].'),
        "dry_run": ("INVALID_VALUE", "Write true or false."),
        "if_version": ("INVALID_VALUE", as_string),
        "cwd": ("INVALID_VALUE", None),
        "session_id": ("INVALID_VALUE", 'Write "...".'),
    }
    assert "PW" not in json_line(wrong.value.describe()).decode()


@pytest.mark.parametrize("name", ["task_work", "audit", "lab_try", "test", "build"])
def test_a_tool_that_runs_any_program_is_destructive_and_open_world(name: str) -> None:
    hints = tools()[name].annotations

    assert hints["destructive_hint"]
    assert hints["open_world_hint"]
    assert "read_only_hint" not in hints


@pytest.mark.parametrize(
    ("facts", "annotations"),
    [
        ({"effect": "nothing"}, {"read_only_hint": True, "open_world_hint": False}),
        (
            {"effect": "nothing", "idempotent": True},
            {"read_only_hint": True, "open_world_hint": False},
        ),
        ({"effect": "files"}, {"destructive_hint": False, "open_world_hint": False}),
        (
            {"effect": "files", "idempotent": True},
            {"destructive_hint": False, "open_world_hint": False, "idempotent_hint": True},
        ),
        (
            {"effect": "files", "destroys": "The order."},
            {"destructive_hint": True, "open_world_hint": False},
        ),
        (
            {"effect": "nothing", "runs_what_it_is_given": True},
            {"destructive_hint": True, "open_world_hint": True},
        ),
    ],
)
def test_annotations_follow_from_what_the_command_declares(
    facts: dict[str, Any],
    annotations: dict[str, bool],
) -> None:
    assert described_by(**facts).annotations == annotations


def described_by(parameters: Sequence[Parameter] = (), **facts: Any) -> Tool:
    """Return the tool of a command about which the manifest says this."""
    manifest = {
        "command": "order cancel",
        "summary": "Cancel an order.",
        "help": "",
        "effect": "files",
        "reads": [],
        "destroys": "",
        "idempotent": False,
        "runs_what_it_is_given": False,
        "data": {"properties": {"effect": {"enum": ["updated"]}}},
        **facts,
    }
    return Tool("order_cancel", manifest, [*parameters])


@pytest.mark.parametrize(
    ("facts", "description"),
    [
        ({}, "Cancel an order."),
        ({"help": "It stays listed."}, "Cancel an order. It stays listed."),
        ({"destroys": "The bill."}, "Cancel an order. Destroys: The bill."),
        ({"help": "x" * 313}, f"Cancel an order. {'x' * 313}"),
        ({"help": "x" * 314}, "Cancel an order."),
        ({"help": "x" * 314, "destroys": "The bill."}, "Cancel an order. Destroys: The bill."),
    ],
)
def test_a_description_has_all_of_the_help_only_if_that_is_short(
    facts: dict[str, Any],
    description: str,
) -> None:
    assert described_by(**facts).description == description


def test_the_schemas_name_the_parameters_and_the_members_of_the_data() -> None:
    tool = described_by(
        [
            parameter("order", is_required=True, schema={"type": "string"}),
            parameter("reason", schema={"type": "integer"}),
            parameter("store", is_shown=False),
        ]
    )

    assert tool.input_schema() == {
        "type": "object",
        "properties": {"order": {"type": "string"}, "reason": {"type": "integer"}},
        "required": ["order"],
    }
    assert tool.output_schema()["properties"]["data"] == {
        "type": ["object", "null"],
        "properties": {"effect": {"type": "string"}},
    }


def test_a_response_has_the_names_of_the_protocol_only_in_its_error() -> None:
    error = {
        "message": "m",
        "suggestion": "To wait for the lock, pass --lock-timeout 2m. Or try again later.",
        "errors": [{"param": "--if-version", "code": "X", "message": "m"}],
    }
    config_set = tools()["config_set"]

    failed = config_set.translate_response(json_line({"ok": False, "data": 1, "error": error}))
    done = config_set.translate_response(b'{"ok":true, "data":"--if-version"}\n')

    assert json.loads(failed) == {
        "ok": False,
        "data": 1,
        "error": {
            "message": "m",
            "suggestion": 'To wait for the lock, pass lock_timeout: "2m". Or try again later.',
            "errors": [{"param": "if_version", "code": "X", "message": "m"}],
        },
    }
    assert done == b'{"ok":true, "data":"--if-version"}\n'


_SLOW = ("scratch", "outputs", "files")
"""Commands with these effects could run for long. They get a value that is surely wrong."""
_TEXTS = st.sampled_from(
    [
        "",
        "null",
        "undefined",
        "%2e%2e",
        "-",
        "--json",
        "a\n",
        "\N{CYRILLIC SMALL LETTER A}",
        "{",
        "9" * 99,
    ]
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
def test_whatever_the_arguments_there_is_one_response_and_a_refused_call_changes_nothing(
    tool: CommandLine, tmp_path: Path, data: st.DataObject
) -> None:
    asked = tools()[data.draw(st.sampled_from(sorted(tools())))]
    names = [parameter.name for parameter in asked.parameters]
    arguments = data.draw(
        st.dictionaries(st.sampled_from([*names, "unknown"]), _ANYTHING, max_size=3)
    )
    if asked.manifest["effect"] in _SLOW:
        arguments["lock_timeout"] = "never"
    before = file_states(tmp_path)

    try:
        words = asked.command_line({"timeout": "5s"} | arguments)
    except UsageMistakes:
        return
    ran = tool("--format=jsonl", *words)
    answer = json.loads(ran.stdout.splitlines()[-1])

    assert problems_of(answer) == []
    codes = {kind.code for kind in errors_of_every_command()} | asked.manifest["errors"].keys()
    assert answer["ok"] or answer["error"]["code"] in codes
    assert ran.status == answer["meta"]["exit_code"] != 1
    if ran.status == 2:
        assert file_states(tmp_path) == before


@pytest.mark.parametrize(
    ("effect", "reads", "reads_only"),
    [
        ("nothing", [], True),
        ("nothing", ["workspace"], True),
        ("nothing", ["machine"], False),
        ("scratch", [], False),
        ("server", [], False),
    ],
)
def test_only_a_tool_without_any_effect_runs_in_the_process_of_the_server(
    effect: str,
    reads: list[str],
    reads_only: bool,
) -> None:
    """A command that examines the machine starts processes of its own."""
    assert described_by(effect=effect, reads=reads).reads_only is reads_only
