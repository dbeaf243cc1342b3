"""tool manifest"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.app import root
from sampletool.kit.context import Context
from sampletool.kit.contract.errors import UsageMistakes
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.tool import Tool, declared_specs, told_of


def test_every_command_is_described_with_how_it_can_end(tool: Tool) -> None:
    data = tool("manifest").data

    described = {entry["command"].replace(" ", "."): entry for entry in data["commands"]}
    assert described.keys() == declared_specs().keys()
    for name, entry in described.items():
        assert {int(number) for number in entry["exit_statuses"]} == set(
            map(int, declared_specs()[name].exit_statuses())
        )
        assert entry["summary"]
        assert entry["examples"]
        assert {"type", "anyOf"} & entry["data"].keys(), name


def test_whatever_changes_something_can_be_forecast(tool: Tool) -> None:
    for entry in tool("manifest").data["commands"]:
        flags = {flag for option in entry["options"] for flag in option["flags"]}
        if entry["effect"] not in ("nothing", "scratch") and entry["command"] != "task work":
            assert "--dry-run" in flags, entry["command"]


def test_one_command_or_one_group_can_be_asked_for(tool: Tool) -> None:
    assert [entry["command"] for entry in tool("manifest", "config", "get").data["commands"]] == ["config get"]
    assert len(tool("manifest", "config").data["commands"]) == 6


def test_a_command_that_is_not_there_is_not_found(tool: Tool) -> None:
    ran = tool("manifest", "config", "gte")

    assert (ran.status, ran.code) == (5, "COMMAND_NOT_FOUND")
    assert "'config get'" in ran.error["suggestion"]


def test_what_a_call_takes_is_told_in_words_of_callers(tool: Tool) -> None:
    manifest = tool("manifest").data
    params = [param for entry in manifest["commands"] for param in (*entry["arguments"], *entry["options"])]
    params += manifest["options"]

    kinds = {"string", "integer", "number", "boolean", "duration", "path", "choice"}
    assert {param["type"] for param in params} <= kinds
    assert all(param["choices"] for param in params if param["type"] == "choice")
    assert all("default" not in param for param in params if param["required"])
    assert all(flag[:2] != "--" or flag.islower() for param in params for flag in param.get("flags", ()))
    assert all("{" not in entry["usage"] for entry in manifest["commands"])


def test_what_every_command_takes_is_told_too(tool: Tool) -> None:
    told = {option["flags"][0]: option for option in tool("manifest", "config", "get").data["options"]}

    assert told["--format"]["choices"] == ["json", "jsonl", "text"]
    assert (told["--timeout"]["type"], told["--cwd"]["type"], told["--json"]["type"]) == ("duration", "path", "boolean")


def test_an_option_of_a_command_is_found_by_its_flag(tool: Tool) -> None:
    assert told_of(tool, "config set", "--if-version").items() >= {"metavar": "VERSION", "required": False}.items()


def test_every_error_code_is_told_with_its_status_and_meaning(tool: Tool) -> None:
    manifest = tool("manifest").data

    for code, told in manifest["error_codes"].items():
        assert told["meaning"].endswith("."), code
        assert str(told["exit_status"]) in manifest["exit_statuses"]
    retryable = {code for code, told in manifest["error_codes"].items() if told["retryable"]}
    assert {"LOCK_HELD"} <= retryable <= {"LOCK_HELD", "STORE_UNAVAILABLE"}
    assert "STORE_UNAVAILABLE" not in tool("manifest", "config", "get").data["error_codes"]


def test_an_effect_is_one_of_the_words_of_the_contract(tool: Tool) -> None:
    words = {"created", "updated", "deleted", "unchanged"}
    for entry in tool("manifest").data["commands"]:
        for effect in effects_in(entry["data"]):
            assert effect.get("enum")
            assert set(effect["enum"]) <= words, entry["command"]


def effects_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, member in schema.get("properties", {}).items():
        yield from [member] if name == "effect" else effects_in(member)
    for member in (*schema.get("anyOf", []), *([schema["items"]] if "items" in schema else [])):
        yield from effects_in(member)


def test_settings_and_variables_that_count_are_told(tool: Tool) -> None:
    manifest = tool("manifest", "config", "get").data
    page = (Path(__file__).parents[3] / "docs" / "kit" / "settings.md").read_text()

    assert manifest["settings"]["lock_timeout"]["environment"] == "TOOL_LOCK_TIMEOUT"
    told = {setting["environment"] for setting in manifest["settings"].values()} | manifest["environment"].keys()
    assert set(re.findall(r"`(TOOL_[A-Z_]+|NO_COLOR|FORCE_COLOR|CI)`", page)) <= told


def mistakes_of(example: str) -> list[str]:
    """Of a call that is parsed and, because of a mistake of its own, never runs."""
    args = ["--lock-timeout", "never", *shlex.split(example)]
    with pytest.raises(UsageMistakes) as caught:
        root(args).main(args=args, prog_name="tool", standalone_mode=False, obj=Context(Signals()))
    return [mistake.message for mistake in caught.value.mistakes[1:]]


def test_examples_are_calls_that_parse() -> None:
    for command, spec in declared_specs().items():
        for example in spec.examples:
            assert f"{example} ".startswith(f"{command.replace('.', ' ')} "), f"{example} is no call of {command}"
            assert mistakes_of(example) == [], example


@pytest.mark.parametrize("wrong", ["config get jobs --bogus", "config get", "config list too-much", "confg get jobs"])
def test_an_example_that_does_not_parse_is_noticed(wrong: str) -> None:
    assert mistakes_of(wrong) != []


def test_what_a_call_answers_is_what_the_schema_says(tool: Tool) -> None:
    (entry,) = tool("manifest", "config", "get").data["commands"]
    data = tool("config", "get", "jobs").data

    assert set(entry["data"]["required"]) <= data.keys() <= entry["data"]["properties"].keys()
