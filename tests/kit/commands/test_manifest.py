"""tool manifest"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.app import root_command
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import UsageMistakes
from sampletool.kit.program import PACKAGE, PROGRAM, WORKSPACE_FILE
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.forked import run_python
from sampletool.kit.testing.schema import described
from sampletool.kit.testing.tool import Ran, Tool, declared_specs, describe_option
from tests.kit.trees import ROOT, file_states

_INDEX_BYTES = 6000
_ENTRY_BYTES = 9000


def test_the_index_names_every_command_and_costs_little(tool: Tool) -> None:
    ran = tool("manifest")

    assert {entry["command"].replace(" ", ".") for entry in ran.data["commands"]} == described().keys()
    assert all(entry.keys() == {"command", "summary", "effect"} for entry in ran.data["commands"])
    assert len(ran.stdout) < _INDEX_BYTES


def test_every_command_is_described_with_how_it_can_end() -> None:
    for name, entry in described().items():
        assert {int(number) for number in entry["exit_statuses"]} == set(declared_specs()[name].exit_statuses())
        assert entry["summary"]
        assert entry["examples"], name
        assert {"type", "anyOf"} & entry["data"].keys(), name
        assert len(str(entry)) < _ENTRY_BYTES, name


def test_whatever_changes_something_can_be_forecast() -> None:
    for entry in described().values():
        flags = {flag for option in entry["options"] for flag in option["flags"]}
        if entry["effect"] not in ("nothing", "scratch") and entry["command"] != "task work":
            assert "--dry-run" in flags, entry["command"]


def test_what_destroys_nothing_changes_nothing_that_was_there() -> None:
    for entry in described().values():
        assert not entry["destroys"] or (entry["effect"] != "nothing" and entry["destroys"].endswith(".")), entry


def test_some_commands_and_groups_can_be_asked_for_and_nothing_else_is_described(tool: Tool) -> None:
    asked = tool("manifest", "config.get", "lock").data

    assert asked.keys() == {"commands"}
    assert [entry["command"] for entry in asked["commands"]] == ["config get", "lock list", "lock release"]
    assert tool("manifest", "config", "get").data["commands"] == asked["commands"][:1]


def test_all_is_all_of_it(tool: Tool) -> None:
    manifest = tool("manifest", "--all").data

    assert manifest["commands"] == json.loads(json.dumps([*described().values()]))
    assert manifest.keys() > tool("manifest", "--schema").data.keys()


def test_all_of_it_comes_in_pages_too(tool: Tool) -> None:
    names = [*described()]
    page = tool("manifest", "--all", "--limit", "2")
    more = tool("manifest", "--all", "--limit", "1", "--after", page.meta["next_cursor"])

    shown = [entry["command"] for ran in (page, more) for entry in ran.data["commands"]]
    assert shown == sorted(name.replace(".", " ") for name in names)[:3]
    assert tool("manifest", "--all", "--after", "nonsense").code == "VALIDATION_ERROR"


def test_a_command_that_is_not_there_is_not_found(tool: Tool) -> None:
    ran = tool("manifest", "config", "gte")

    assert (ran.status, ran.code) == (5, "COMMAND_NOT_FOUND")
    assert "'config get'" in ran.error["suggestion"]
    assert "'config get'" in tool("manifest", "lock", "config", "gte").error["suggestion"]


def test_what_a_call_takes_is_described_in_words_of_callers(tool: Tool) -> None:
    params = [param for entry in described().values() for param in (*entry["arguments"], *entry["options"])]
    params += tool("manifest", "--schema").data["options"]

    kinds = {"string", "integer", "number", "boolean", "duration", "path", "choice"}
    assert {param["type"] for param in params} <= kinds
    assert all(param["choices"] for param in params if param["type"] == "choice")
    assert all("default" not in param for param in params if param["required"])
    assert all(flag[:2] != "--" or flag.islower() for param in params for flag in param.get("flags", ()))
    assert all("{" not in entry["usage"] for entry in described().values())


def test_what_every_command_takes_is_described_once(tool: Tool) -> None:
    told = {option["flags"][0]: option for option in tool("manifest", "--schema").data["options"]}

    assert told["--format"]["choices"] == ["json", "jsonl", "text"]
    assert (told["--timeout"]["type"], told["--cwd"]["type"], told["--json"]["type"]) == ("duration", "path", "boolean")
    assert (told["--timeout"]["variable"], told["--lock-timeout"]["variable"]) == ("TOOL_TIMEOUT", "TOOL_LOCK_TIMEOUT")
    assert told["--session-id"]["completion"]
    assert not {flag for option in described()["config.get"]["options"] for flag in option["flags"]} & told.keys()


def test_an_option_of_a_command_is_found_by_its_flag(tool: Tool) -> None:
    option = describe_option(tool, "config set", "--if-version")

    assert option.items() >= {"metavar": "VERSION", "required": False}.items()


def test_every_error_code_is_described_with_its_status_and_meaning(tool: Tool) -> None:
    statuses = tool("manifest", "--schema").data["exit_statuses"]

    for name, entry in described().items():
        for code, told in entry["errors"].items():
            assert told["meaning"].endswith("."), code
            assert statuses[str(told["exit_status"])] == entry["exit_statuses"][str(told["exit_status"])]
        retryable = {code for code, told in entry["errors"].items() if told["retryable"]}
        assert retryable <= {"LOCK_HELD", "STORE_UNAVAILABLE"}
        assert ("LOCK_HELD" in retryable) >= bool(declared_specs()[name].locks)
    assert "STORE_UNAVAILABLE" not in described()["config.get"]["errors"]


def test_how_long_a_lock_is_waited_for_is_described(tool: Tool) -> None:
    waits = {lock["lock"]: lock["waits"] for entry in described().values() for lock in entry["locks"]}

    assert waits["settings file"] == "10s"
    assert set(waits.values()) <= {"10s", "0ms"}


def test_an_effect_is_one_of_the_words_of_the_contract() -> None:
    words = {"created", "updated", "deleted", "unchanged"}
    for entry in described().values():
        for effect in members_of(entry["data"], "effect"):
            assert set(effect.get("enum", ["?"])) <= words or entry["command"] == "manifest", entry["command"]


def members_of(schema: dict[str, Any], wanted: str) -> Iterator[dict[str, Any]]:
    for name, member in schema.get("properties", {}).items():
        yield from [member] if name == wanted else members_of(member, wanted)
    for member in (*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])):
        yield from members_of(member, wanted)


def test_settings_and_variables_that_count_are_described(tool: Tool) -> None:
    manifest = tool("manifest", "--schema").data
    page = (Path(__file__).parents[3] / "docs" / "kit" / "settings.md").read_text()

    assert manifest["settings"]["lock_timeout"]["environment"] == "TOOL_LOCK_TIMEOUT"
    told = {setting["environment"] for setting in manifest["settings"].values()} | manifest["environment"].keys()
    assert set(re.findall(r"`(TOOL_[A-Z_]+|NO_COLOR|FORCE_COLOR|CI)`", page)) <= told


def mistakes_of(example: str) -> list[str]:
    """Of a call that is parsed and, because of a mistake of its own, never runs."""
    args = ["--lock-timeout", "never", *shlex.split(example)]
    with pytest.raises(UsageMistakes) as caught:
        root_command(args).main(args=args, prog_name="tool", standalone_mode=False, obj=Context(Signals()))
    return [mistake.message for mistake in caught.value.mistakes[1:]]


def test_examples_are_calls_that_parse() -> None:
    for command, spec in declared_specs().items():
        for example in spec.examples:
            call = example.rpartition(" | ")[2]
            assert f"{call} ".startswith(f"{command.replace('.', ' ')} "), f"{example} is no call of {command}"
            assert mistakes_of(call) == [], example


@pytest.mark.parametrize("wrong", ["config get jobs --bogus", "config get", "config list too-much", "confg get jobs"])
def test_an_example_that_does_not_parse_is_noticed(wrong: str) -> None:
    assert mistakes_of(wrong) != []


def call_of(tool: Tool, line: str) -> Ran:
    """A line of the manifest, as a shell would run it, with an answer in JSON."""
    source, _, call = line.rpartition(" | ")
    program, *args = shlex.split(call)
    first, *words = shlex.split(source) or [""]
    stdin = (tool.cwd / words[0]).read_bytes() if first == "cat" else f"{' '.join(words)}\n".encode()
    paths = [[str(path) for path in sorted(tool.cwd.glob(arg))] if "*" in arg else [arg] for arg in args]
    assert program == PROGRAM
    return tool("--json", "--verbose", *(word for some in paths for word in some), stdin=stdin if first else b"")


@pytest.mark.parametrize("command", list(described()))
def test_a_caller_that_knows_only_the_manifest_calls_every_command(tool: Tool, tmp_path: Path, command: str) -> None:
    """The plugin checks each answer against the schemas.

    The examples really run, those of the lab and of `test` too: all of them together take nine seconds.
    """
    (entry,) = tool("manifest", *command.split(".")).data["commands"]
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / PROGRAM).write_text(f'#!/bin/sh\nexec {sys.executable} -m {PACKAGE} "$@"\n')
    (programs / PROGRAM).chmod(0o755)
    tool.environ["PATH"] = f"{programs}:{os.environ['PATH']}"
    for needed in (ROOT / "tests").glob(f"*/examples/{command}"):  # a file that is the user's own to write
        shutil.copytree(needed, tool.cwd, dirs_exist_ok=True)
    lines = [*entry["before"], *entry["examples"]]
    first = lines[0].rpartition(" | ")[2]
    needs = [
        each["errors"]
        for name, each in described().items()
        if f"{first} ".startswith(f"{PROGRAM} {name.replace('.', ' ')} ")
    ]
    if any("NO_WORKSPACE" in codes for codes in needs):
        (tool.cwd / WORKSPACE_FILE).touch()

    for line in lines:
        before = file_states(tmp_path)
        ran = call_of(tool, line)
        assert ran.answer["ok"], (line, ran.answer)
        if line in entry["examples"]:
            assert locks_of(ran) <= {each["lock"] for each in entry["locks"]}, line
            assert entry["effect"] != "nothing" or file_states(tmp_path) == before, f"{line} changes files"


def locks_of(ran: Ran) -> set[str]:
    """As --verbose shows them: the first word says which kind it is, but that of a settings file is the file's name."""
    taken = set(re.findall(r"^lock (\S+).*: asked for by", ran.stderr.decode(), re.MULTILINE))
    return {"settings file" if name in (WORKSPACE_FILE, "config.toml") else name for name in taken}


def test_the_skill_lists_every_command_and_its_loop_raises_after_its_last_try(tool: Tool, workspace: Path) -> None:
    skill = tool("manifest", "--skill").text
    (loop,) = re.findall(r"^```python\n(.*?)^```$", skill, re.M | re.S)
    loop = loop.replace(f'["{PROGRAM}"', f'[{sys.executable!r}, "-m", {PACKAGE!r}')
    calls = "print(call('config', 'set', 'a', '1')['effect'])\ntry: call('config', 'get', 'nope')"
    calls += "\nexcept RuntimeError as error: print(error)"
    ran = run_python("-c", f"{loop}\n{calls}", cwd=workspace, env=tool.environ)

    assert skill.startswith(f"---\nname: {PROGRAM}\ndescription: ")
    assert [name for name in described() if f"| `{name.replace('.', ' ')}` |" not in skill] == []
    assert ran.stdout.startswith("created\nnope is not set in ")
