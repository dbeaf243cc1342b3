"""`tool manifest`."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import pytest
import typer

from sampletool.kit import start
from sampletool.kit.app import root_command, run_in_process
from sampletool.kit.command_folder import FileCommand
from sampletool.kit.commands.manifest import describe, find_commands
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import KeyNotFound
from sampletool.kit.contract.response import count_fitting
from sampletool.kit.program import PACKAGE, PROGRAM, __version__
from sampletool.kit.project import ROOT
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.schema import described
from sampletool.kit.testing.tool import Tool, declared_specs, describe_option
from sampletool.kit.typer_parameters import command_of

_MAX_INDEX_BYTES = 6000
_MAX_DESCRIPTION_BYTES = 6000
_MAX_ORDINARY_DESCRIPTION_BYTES = 2650
_MAX_RESPONSE_BYTES = 64 * 1024


def _params() -> Iterator[dict[str, Any]]:
    """Yield every argument and option of every command."""
    for entry in described().values():
        yield from entry["arguments"]
        yield from entry["options"]


def _flags(entry: dict[str, Any]) -> set[str]:
    flags = set()
    for option in entry["options"]:
        flags.update(option["flags"])
    return flags


def test_the_index_names_every_command_and_is_short(tool: Tool) -> None:
    ran = tool("manifest")

    names = {entry["command"].replace(" ", ".") for entry in ran.data["commands"]}
    assert names == described().keys()
    for entry in ran.data["commands"]:
        assert entry.keys() == {"command", "summary", "effect"}
    assert len(ran.stdout) < _MAX_INDEX_BYTES


@pytest.mark.parametrize("command", list(described()))
def test_every_command_is_described(command: str) -> None:
    entry = described()[command]

    assert entry["summary"]
    assert entry["examples"]
    assert {"type", "anyOf"} & entry["data"].keys()
    assert len(json.dumps(entry)) < _MAX_DESCRIPTION_BYTES


def test_the_description_of_an_ordinary_command_is_short(tool: Tool) -> None:
    data = tool("manifest", "config", "set").data

    assert len(json.dumps(data, separators=(",", ":"))) < _MAX_ORDINARY_DESCRIPTION_BYTES


def test_no_response_of_the_manifest_is_longer_than_64_kib(tool: Tool) -> None:
    arguments: list[str] = []
    for name in described():
        arguments.append(name)

    for call in (["--all", "--schema"], ["--all", "--limit", "10000"], arguments, ["--skill"], []):
        ran = tool("manifest", *call)

        assert len(ran.stdout) <= _MAX_RESPONSE_BYTES, call


def test_pages_that_end_early_are_the_whole_list_together(tool: Tool) -> None:
    commands: list[dict[str, Any]] = []
    cursor: list[str] = []
    page_count = 0
    while page_count == 0 or cursor:
        ran = tool("manifest", "--all", *cursor)
        commands += ran.data["commands"]
        page_count += 1
        cursor = []
        if "next_cursor" in ran.meta:
            cursor = ["--after", ran.meta["next_cursor"]]

    descriptions = list(described().values())
    # A project without parts has so few commands that their descriptions fit on one page.
    fit_on_one_page = count_fitting(descriptions) == len(descriptions)
    assert (page_count == 1) == fit_on_one_page
    assert commands == json.loads(json.dumps(descriptions))


def test_a_page_of_descriptions_has_a_limit_and_a_cursor(tool: Tool) -> None:
    first = tool("manifest", "--all", "--limit", "2")
    second = tool("manifest", "--all", "--limit", "1", "--after", first.meta["next_cursor"])
    wrong = tool("manifest", "--all", "--after", "nonsense")

    shown = [entry["command"] for ran in (first, second) for entry in ran.data["commands"]]
    assert shown == sorted(name.replace(".", " ") for name in described())[:3]
    assert first.meta["total"] == second.meta["total"] == len(described())
    assert wrong.code == "USAGE_ERROR"


def test_one_response_has_every_command_with_its_arguments_and_options(tool: Tool) -> None:
    ran = tool("manifest", "--tree")

    assert ran.meta["has_more"] is False
    assert len(ran.stdout) <= _MAX_RESPONSE_BYTES
    outlines = {entry["command"].replace(" ", "."): entry for entry in ran.data["commands"]}
    assert outlines.keys() == described().keys()
    for name, entry in described().items():
        outline = outlines[name]
        assert outline.keys() == {
            "command",
            "summary",
            "effect",
            "danger_level",
            "arguments",
            "options",
        }
        for kind in ("arguments", "options"):
            for param, full_param in zip(outline[kind], entry[kind], strict=True):
                left_out = full_param.keys() - param.keys()
                assert left_out <= {"metavar", "completion"}, name


def test_the_tree_of_a_group_has_only_its_commands(tool: Tool) -> None:
    data = tool("manifest", "lock", "--tree").data

    assert [entry["command"] for entry in data["commands"]] == ["lock list", "lock release"]


def test_each_description_says_how_much_the_command_can_damage() -> None:
    levels = {name: entry["danger_level"] for name, entry in described().items()}

    assert levels["config.get"] == "safe"
    assert levels["lock.release"] == "destructive"
    assert set(levels.values()) <= {"safe", "mutating", "destructive"}
    for name, entry in described().items():
        assert (levels[name] == "destructive") == bool(entry["destroys"]), name


def test_each_description_says_what_the_account_of_the_command_may_do() -> None:
    for entry in described().values():
        reads_store = "store" in entry["reads"]
        assert ("store:read" in entry["required_scopes"]) == reads_store
        assert ("store:write" in entry["required_scopes"]) == (entry["effect"] == "store")


def test_each_description_says_whether_an_argument_can_come_from_stdin() -> None:
    for name, command in find_commands(root_command()):
        if command.spec.stdin_arguments:
            assert "stdin" in describe(name, command)["reads"], name


def test_the_oldest_python_is_described(tool: Tool) -> None:
    oldest_version = ".".join(str(number) for number in start._OLDEST_PYTHON)

    assert tool("manifest", "--schema").data["requires"] == {"python": f">={oldest_version}"}


def test_a_page_ends_before_the_description_that_would_make_it_too_long() -> None:
    descriptions = [{"command": name, "help": "x" * 20_000} for name in "abcd"]

    assert count_fitting(descriptions) == 2
    assert count_fitting(descriptions[:2]) == 2


def test_one_description_fits_on_a_page_however_long_it_is() -> None:
    long_description = {"command": "long", "help": "x" * 1_000_000}

    count = count_fitting([long_description, {"command": "short"}])

    assert count == 1


def test_each_effect_is_described_by_a_sentence(tool: Tool) -> None:
    for effect in tool("manifest", "--schema").data["effects"].values():
        assert effect["help"].endswith(".")


def test_each_description_says_whether_the_command_runs_what_it_is_given() -> None:
    for name, entry in described().items():
        assert entry["runs_what_it_is_given"] is declared_specs()[name].runs_what_it_is_given


def test_the_error_codes_of_every_command_are_described_once(tool: Tool) -> None:
    shared = tool("manifest", "--schema").data["errors"]

    assert {"INTERNAL_ERROR", "INTERRUPTED", "IO_ERROR", "NO_SPACE", "USAGE_ERROR"} <= shared.keys()
    for name, entry in described().items():
        declared = {error.code for error in declared_specs()[name].all_errors()}
        assert shared.keys() | entry["errors"].keys() == declared, name
    assert described()["config.set"]["errors"].keys() == {
        "VERSION_CONFLICT",
        "LOCK_HELD",
        "NESTED_CALL",
        "LOCKS_UNSUPPORTED",
    }


def test_what_is_unusual_about_a_command_is_in_its_description() -> None:
    (command,) = (found for name, found in find_commands(root_command()) if name == "config get")
    usual = describe("config get", command)
    command.spec = command.spec._replace(deprecated="Use that.", former_names=("fetch",))

    unusual = describe("config get", command)

    assert not {"deprecated", "former_names", "needs_terminal"} & usual.keys()
    assert (unusual["deprecated"], unusual["former_names"]) == ("Use that.", ["fetch"])
    assert described()["config.edit"]["needs_terminal"] is True


def test_several_commands_and_groups_can_be_described_together(tool: Tool) -> None:
    data = tool("manifest", "config.get", "lock").data
    one = tool("manifest", "config", "get").data

    assert data.keys() == {"commands"}
    names = [entry["command"] for entry in data["commands"]]
    assert names == ["config get", "lock list", "lock release"]
    assert one["commands"] == data["commands"][:1]


def test_a_command_that_does_not_exist_is_not_found(tool: Tool) -> None:
    ran = tool("manifest", "config", "gte")
    among_others = tool("manifest", "lock", "config", "gte")

    assert (ran.status, ran.code) == (5, "COMMAND_NOT_FOUND")
    assert "'config get'" in ran.error["suggestion"]
    assert "'config get'" in among_others.error["suggestion"]


def test_parameters_are_described_as_a_caller_writes_them(tool: Tool) -> None:
    params = [*_params(), *tool("manifest", "--schema").data["options"]]

    types = {"string", "integer", "number", "boolean", "duration", "path", "choice"}
    for param in params:
        assert param["type"] in types
        assert param["type"] != "choice" or param["choices"]
        assert not ("default" in param and param.get("required"))
        for flag in param.get("flags", ()):
            assert not flag.startswith("--") or flag.islower()
    for entry in described().values():
        assert "{" not in entry["usage"]


def test_required_and_repeatable_are_stated_only_where_they_are_true() -> None:
    for param in _params():
        assert param.get("required", True) is True
        assert param.get("repeatable", True) is True
    (keys,) = described()["config.unset"]["arguments"]
    assert (keys["required"], keys["repeatable"]) == (True, True)


def test_options_of_every_command_are_described_once(tool: Tool) -> None:
    shared = {}
    for option in tool("manifest", "--schema").data["options"]:
        shared[option["flags"][0]] = option

    assert shared["--format"]["choices"] == ["json", "jsonl", "text"]
    types = [shared[flag]["type"] for flag in ("--timeout", "--cwd", "--json")]
    assert types == ["duration", "path", "boolean"]
    variables = [shared[flag]["variable"] for flag in ("--timeout", "--lock-timeout")]
    assert variables == ["TOOL_TIMEOUT", "TOOL_LOCK_TIMEOUT"]
    assert shared["--session-id"]["completion"]
    assert not _flags(described()["config.get"]) & shared.keys()


def test_an_option_of_a_command_is_found_by_its_flag(tool: Tool) -> None:
    option = describe_option(tool, "config set", "--if-version")

    assert option["metavar"] == "VERSION"
    assert "required" not in option


def test_every_error_is_described_with_its_exit_code_and_meaning(tool: Tool) -> None:
    schema = tool("manifest", "--schema").data

    described_errors = [*schema["errors"].items()]
    for entry in described().values():
        described_errors += entry["errors"].items()
    for code, error in described_errors:
        assert error["meaning"].endswith("."), code
        assert str(error["exit_status"]) in schema["exit_statuses"], code
    for name, entry in described().items():
        assert ("LOCK_HELD" in entry["errors"]) >= bool(declared_specs()[name].locks), name


def test_the_wait_for_each_lock_is_described() -> None:
    waits = {}
    for entry in described().values():
        for lock in entry["locks"]:
            waits[lock["lock"]] = lock["waits"]

    assert waits["settings file"] == "10s"
    assert set(waits.values()) <= {"10s", "0ms"}


def test_the_settings_and_variables_of_the_settings_page_are_described(tool: Tool) -> None:
    schema = tool("manifest", "--schema").data
    page = (ROOT / "docs" / "kit" / "settings.md").read_text()

    variables = set(schema["environment"])
    for setting in schema["settings"].values():
        variables.add(setting["environment"])
    on_page = set(re.findall(r"`(TOOL_[A-Z_]+|NO_COLOR|FORCE_COLOR|CI)`", page))
    assert schema["settings"]["lock_timeout"]["environment"] == "TOOL_LOCK_TIMEOUT"
    assert on_page <= variables


def test_the_skill_lists_every_command(tool: Tool) -> None:
    skill = tool("manifest", "--skill").text

    assert skill.startswith(f"---\nname: {PROGRAM}\ndescription: ")
    assert f"describes {PROGRAM} {__version__}." in skill
    for name in described():
        assert f"| `{name.replace('.', ' ')}` |" in skill


def test_the_skill_names_the_commands_that_write_something_else_to_stdout(tool: Tool) -> None:
    skill = tool("manifest", "--skill").text

    names = []
    for name, command in find_commands(root_command()):
        if command.spec.takes_stdout:
            names.append(f"`{name}`")
    assert not names or f"Exceptions: {', '.join(names)}." in skill
    assert "OTHER_STDOUT" not in skill


def test_the_loop_of_the_skill_raises_after_its_last_try(tool: Tool, workspace: Path) -> None:
    skill = tool("manifest", "--skill").text
    (loop,) = re.findall(r"^```python\n(.*?)^```$", skill, re.MULTILINE | re.DOTALL)
    loop = loop.replace(f'["{PROGRAM}"', f'[{sys.executable!r}, "-m", {PACKAGE!r}')
    calls = """
print(call('config', 'set', 'a', '1')['effect'])
try:
    call('config', 'get', 'nope')
except RuntimeError as error:
    print(error)
"""

    ran = run_python("-c", f"{loop}\n{calls}", cwd=workspace, env=tool.environ)

    assert ran.stdout.startswith("created\nnope is not set in ")


# One description as a whole


class Pair(NamedTuple):
    """The result of the command below."""

    first: str
    jobs: int | None


def _add(
    items: Annotated[list[str], typer.Argument(metavar="ITEM...", help="Items to add.")],
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Work in parallel.")] = 1,
    force: Annotated[bool, typer.Option("--force")] = False,
) -> Pair:
    """Add items.

    They are kept
    in the order.
    """
    return Pair(items[0], jobs)


def _command(spec: CommandSpec) -> FileCommand:
    command: FileCommand = command_of(_add, FileCommand)
    command.spec = spec
    return command


_PLAIN = CommandSpec(
    effect="files",
    errors=(KeyNotFound,),
    locks=("build", "output"),
    at_once=("build",),
    reads=("files",),
    destroys="The old items.",
    idempotent=False,
    before=("init",),
    examples=("add a b", "echo a | add -"),
)


def test_a_description_has_everything_that_a_caller_has_to_know() -> None:
    description = describe("stock add", _command(_PLAIN))

    errors = description.pop("errors")
    assert list(errors) == ["KEY_NOT_FOUND", "LOCKS_UNSUPPORTED", "LOCK_HELD", "NESTED_CALL"]
    assert description == {
        "command": "stock add",
        "usage": f"{PROGRAM} stock add [OPTIONS] ITEM...",
        "summary": "Add items.",
        "help": "They are kept in the order.",
        "effect": "files",
        "danger_level": "destructive",
        "reads": ["files"],
        "required_scopes": [],
        "destroys": "The old items.",
        "idempotent": False,
        "runs_what_it_is_given": False,
        "locks": [{"lock": "build", "waits": "0ms"}, {"lock": "output", "waits": "10s"}],
        "arguments": [
            {
                "name": "items",
                "type": "string",
                "metavar": "ITEM...",
                "required": True,
                "repeatable": True,
                "help": "Items to add.",
            }
        ],
        "options": [
            {
                "name": "jobs",
                "flags": ["--jobs"],
                "type": "integer",
                "minimum": 1,
                "default": 1,
                "metavar": "N",
                "help": "Work in parallel.",
                "variable": "TOOL_JOBS",
            },
            {"name": "force", "flags": ["--force"], "type": "boolean"},
        ],
        "data": {
            "type": "object",
            "properties": {"first": {"type": "string"}, "jobs": {"type": "integer"}},
            "required": ["first"],
        },
        "before": [f"{PROGRAM} init"],
        "examples": [f"{PROGRAM} add a b", f"echo a | {PROGRAM} add -"],
    }


def test_a_description_has_what_is_true_of_few_commands_only_where_it_is_true() -> None:
    plain = describe("add", _command(_PLAIN))
    special_spec = _PLAIN._replace(
        needs_terminal=True,
        deprecated="Use that.",
        former_names=("put",),
        runs_what_it_is_given=True,
    )
    special = describe("add", _command(special_spec))

    added = {name: value for name, value in special.items() if name not in plain}
    assert added == {
        "needs_terminal": True,
        "deprecated": "Use that.",
        "former_names": ["put"],
    }
    assert special["runs_what_it_is_given"] is True


def _data(*words: str) -> dict[str, Any]:
    """Return the data of the command, or the error."""
    response = json.loads(run_in_process(["manifest", *words], Signals()))
    data: dict[str, Any] = response["data"] if response["ok"] else response["error"]
    return data


_SHARED = [
    "options",
    "answer",
    "errors",
    "exit_statuses",
    "effects",
    "settings",
    "environment",
    "requires",
]


@pytest.mark.parametrize(
    ("words", "members"),
    [
        ([], ["commands", "next"]),
        (["config.get"], ["commands"]),
        (["--all", "--limit=2"], ["commands"]),
        (["--schema"], _SHARED),
        (["--schema", "config.get"], ["commands", *_SHARED]),
        (["--schema", "--all", "--limit=2"], ["commands", *_SHARED]),
        (["--skill"], ["value"]),
    ],
)
@pytest.mark.usefixtures("home")
def test_the_manifest_has_what_was_asked_for(words: list[str], members: list[str]) -> None:
    assert list(_data(*words)) == members


@pytest.mark.usefixtures("home")
def test_all_commands_are_described_only_on_request() -> None:
    one = _data("config.get")["commands"]
    first_two = _data("--all", "--limit=2")["commands"]

    assert [description["command"] for description in one] == ["config get"]
    assert len(first_two) == 2
    assert "usage" in first_two[0]
    assert "usage" not in _data()["commands"][0]


@pytest.mark.usefixtures("home")
def test_the_shared_errors_and_exit_codes_have_names_and_meanings() -> None:
    shared = _data("--schema")

    assert shared["errors"]["TIMEOUT"]["exit_status"] == 10
    assert shared["exit_statuses"]["0"] == "OK"
    assert shared["exit_statuses"]["75"] == "LOCK_HELD"
    assert shared["settings"]["jobs"]["environment"] == "TOOL_JOBS"
    assert shared["settings"]["jobs"]["default"] == "auto"
    assert "CI" in shared["environment"]
    assert shared["answer"]["properties"]["data"]["anyOf"][0] == {"type": ["object", "array"]}
