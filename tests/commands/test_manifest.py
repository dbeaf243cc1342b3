"""tool manifest"""

from tests.support.tool import Tool, declared_statuses


def test_every_command_is_described_with_how_it_can_end(tool: Tool) -> None:
    data = tool("manifest").data

    described = {entry["command"].replace(" ", "."): entry for entry in data["commands"]}
    assert described.keys() == declared_statuses().keys()
    for name, entry in described.items():
        assert {int(number) for number in entry["exit_statuses"]} == {int(s) for s in declared_statuses()[name]}
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


def test_examples_are_calls_that_parse(tool: Tool) -> None:
    for entry in tool("manifest").data["commands"]:
        for example in entry["examples"]:
            words = example.partition("tool ")[2].split()
            assert " ".join(words).startswith(entry["command"]), example


def test_what_a_call_answers_is_what_the_schema_says(tool: Tool) -> None:
    (entry,) = tool("manifest", "config", "get").data["commands"]
    data = tool("config", "get", "jobs").data

    assert set(entry["data"]["required"]) <= data.keys() <= entry["data"]["properties"].keys()
