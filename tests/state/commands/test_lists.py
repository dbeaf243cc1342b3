"""Lists of values and tasks show the start of long ones. Other commands show them whole."""

import json
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool

LONG_TEXT = "é" * 250


@pytest.mark.usefixtures("workspace")
def test_a_list_of_tasks_shows_200_characters_of_a_body_and_its_length(tool: Tool) -> None:
    tool("task", "add", "mail", LONG_TEXT, "x" * 200, "null", "--id", "a", "--id", "b", "--id", "c")

    cut, whole, null = tool("task", "list", "mail").data["tasks"]

    assert (cut["body"], cut["body_length"]) == ("é" * 200, 250)
    assert whole["body"] == "x" * 200
    assert "body_length" not in whole
    assert "body_length" not in null
    assert tool("task", "show", "a").data["task"]["body"] == LONG_TEXT


@pytest.mark.usefixtures("workspace")
def test_an_object_that_is_cut_is_shown_as_the_start_of_its_text(tool: Tool) -> None:
    body = {"to": "x" * 300}
    tool("task", "add", "mail", json.dumps(body), "--id", "a")

    (listed,) = tool("task", "list", "mail").data["tasks"]

    assert listed["body"] == json.dumps(body)[:200]
    assert listed["body_length"] == len(json.dumps(body))
    assert tool("task", "show", "a").data["task"]["body"] == body


@pytest.mark.usefixtures("workspace")
def test_a_list_of_values_shows_200_characters_of_a_value_and_its_length(tool: Tool) -> None:
    tool("state", "set", "long", LONG_TEXT)
    tool("state", "set", "short", '{"step": 1}')

    long, short = tool("state", "list").data["values"]

    assert (long["value"], long["length"]) == ("é" * 200, 250)
    assert short["value"] == {"step": 1}
    assert "length" not in short
    assert tool("state", "get", "long").data["value"] == LONG_TEXT


@pytest.mark.usefixtures("workspace")
def test_a_response_says_whether_a_value_or_a_body_was_shortened(tool: Tool) -> None:
    tool("state", "set", "short", "x")
    tool("task", "add", "mail", "x", "--id", "short")
    whole = [tool("state", "list"), tool("task", "list")]
    tool("state", "set", "long", LONG_TEXT)
    tool("task", "add", "mail", LONG_TEXT, "--id", "long")
    shortened = [tool("state", "list"), tool("task", "list")]

    assert not any("truncated" in ran.meta for ran in whole)
    assert all(ran.meta["truncated"] is True for ran in shortened)


@pytest.mark.usefixtures("workspace")
def test_the_caller_of_state_get_can_limit_the_value(tool: Tool) -> None:
    tool("state", "set", "long", LONG_TEXT)

    limited = tool("state", "get", "long", "--max-chars", "10")
    exact = tool("state", "get", "long", "--max-chars", "250")

    assert (limited.data["value"], limited.data["length"]) == ("é" * 10, 250)
    assert limited.meta["truncated"] is True
    assert exact.data["value"] == LONG_TEXT
    assert not {"truncated"} & exact.meta.keys()


@pytest.mark.usefixtures("workspace")
def test_the_caller_of_task_show_can_limit_the_body_and_the_result(tool: Tool) -> None:
    tool("task", "add", "mail", LONG_TEXT, "--id", "a")
    before = tool("task", "show", "a", "--max-chars", "1")
    tool("task", "claim", "mail")
    tool("task", "finish", "a:1", "--result", LONG_TEXT)

    after = tool("task", "show", "a", "--max-chars", "10")

    assert (before.data["task"]["body"], before.data["body_length"]) == ("é", 250)
    assert "result" not in before.data
    assert (after.data["result"], after.data["result_length"]) == ("é" * 10, 250)
    assert after.meta["truncated"] is True


@pytest.mark.usefixtures("workspace")
def test_a_person_sees_a_table_or_that_the_list_is_empty(tool: Tool) -> None:
    no_tasks = tool("task", "list", "--format", "text").text
    no_values = tool("state", "list", "--format", "text").text
    tool("task", "add", "mail", "hello", "--id", "a")
    tasks = tool("task", "list", "--format", "text").text

    assert no_tasks == "No tasks.\n"
    assert no_values == "No values.\n"
    assert "No tasks" not in tasks
    assert tasks.splitlines()[-1].split() == ["a", "mail", "free", "-", "hello"]


@pytest.mark.usefixtures("workspace")
def test_a_person_sees_counters_and_values_as_tables(tool: Tool) -> None:
    no_counters = tool("counter", "list", "--format", "text").text
    tool("counter", "add", "hits", "3")
    tool("state", "set", "leader", "ann")

    counters = tool("counter", "list", "--format", "text").text
    values = tool("state", "list", "--format", "text").text

    assert no_counters == "No counters.\n"
    assert counters.splitlines()[-1].split() == ["hits", "3"]
    assert values.splitlines()[-1].split() == ["leader", "ann", "1"]


@pytest.mark.usefixtures("workspace")
def test_a_person_sees_that_more_follows(tool: Tool) -> None:
    tool("task", "add", "mail", LONG_TEXT)
    tool("state", "set", "key", LONG_TEXT)

    tasks = tool("task", "list", "--format", "text").text
    values = tool("state", "list", "--format", "text").text

    assert "é… (250 characters)" in tasks
    assert "é… (250 characters)" in values


def test_a_list_of_100_large_tasks_is_one_page(tool: Tool, workspace: Path) -> None:
    """Naive: the response is cut at its size, so the page is shorter than was requested."""
    bodies = [json.dumps({"body": "x" * 100_000})] * 100
    (workspace / "tasks.jsonl").write_text("\n".join(bodies) + "\n")
    tool("task", "add", "mail", "--from-file", "tasks.jsonl")

    ran = tool("task", "list", "mail")

    assert len(ran.data["tasks"]) == 100
    assert "next_cursor" not in ran.meta


@pytest.mark.usefixtures("workspace")
def test_only_a_list_of_a_whole_queue_counts_what_is_left(tool: Tool) -> None:
    """Counting looks at all of them, which a list of one status must not do."""
    tool("task", "add", "mail", "x", "y")

    assert tool("task", "list", "mail").data["left"] == 2
    assert "left" not in tool("task", "list", "mail", "--status", "free").data
    assert "left" not in tool("task", "list").data
