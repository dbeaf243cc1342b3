"""`tool log`."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.places import state_directory
from sampletool.kit.safety.clock import utc
from sampletool.kit.testing.tool import Tool

pytestmark = pytest.mark.usefixtures("workspace")


def logged(tool: Tool, *options: str) -> list[dict[str, Any]]:
    return list(tool("log", *options).data["calls"])


def commands_in(tool: Tool, *options: str) -> list[str]:
    return [call["command"] for call in logged(tool, *options)]


def test_each_command_leaves_a_line_with_its_subjects_and_its_result(
    tool: Tool,
    workspace: Path,
) -> None:
    tool("config", "set", "api.url", "http://there", "--session-id", "s1", TOOL_TRACE_ID="t1")
    tool("config", "get", "nope")

    failed, done = logged(tool)

    assert (done["command"], done["exit_code"], done["effect"]) == ("config.set", 0, "created")
    assert (done["session_id"], done["trace_id"], done["cwd"]) == ("s1", "t1", str(workspace))
    assert {"api.url", str(workspace / "tool.toml")} <= set(done["about"])
    assert (failed["command"], failed["exit_code"]) == ("config.get", 5)
    assert (failed["code"], failed["about"]) == ("KEY_NOT_FOUND", ["nope"])


def test_the_text_is_a_table(tool: Tool) -> None:
    tool("config", "get", "no_such_key")

    heads, row = tool("log", "--format", "text").text.splitlines()

    assert heads.split() == ["AT", "COMMAND", "RESULT", "TOOK", "ABOUT"]
    assert re.fullmatch(r"\S+Z +config\.get +KEY_NOT_FOUND +\S+ +no_such_key", row)


def test_no_value_is_logged(tool: Tool, home: Path) -> None:
    tool("config", "set", "api.token", "topsecret")
    tool("config", "set", "jobs", "topsecret")
    tool("config", "set", "plain", "topsecret")
    tool("config", "get", "plain")
    tool("config", "set", "a b", "topsecret", "--topsecret")
    tool("config", "get", '"mongodb://ann:topsecret@host/db"')

    (log,) = home.rglob("calls.jsonl")
    assert len(log.read_text().splitlines()) == 6
    assert "ann:***@host" in log.read_text()
    assert "topsecret" not in log.read_text()


def test_the_list_can_be_restricted(tool: Tool) -> None:
    tool("config", "list")
    tool("config", "get", "nope")
    tool("lock", "list")

    assert commands_in(tool, "--failed") == ["config.get"]
    assert commands_in(tool, "--command", "lock.list") == ["lock.list"]
    assert commands_in(tool, "--command", "config get") == ["config.get"]
    assert commands_in(tool, "--limit", "1", "--since", "1h") == ["log"]


def test_without_a_match_the_list_is_empty(tool: Tool) -> None:
    data = tool("log", "--command", "no.such").data
    text = tool("log", "--command", "no.such", "--format", "text").text

    assert data == {"calls": []}
    assert text == "The log has no matching command.\n"


def test_a_period_that_is_no_duration_is_refused(tool: Tool) -> None:
    ran = tool("log", "--since", "0")

    assert ran.code == "USAGE_ERROR"


def test_a_page_continues_after_the_last_command_of_the_page_before(tool: Tool) -> None:
    for key in ("a", "b", "c"):
        tool("config", "get", key)

    first = tool("log", "--limit", "2")
    cursor = first.meta["next_cursor"]
    second = tool("log", "--limit", "1", "--after", cursor, "--command", "config.get")

    assert [call["about"] for call in first.data["calls"]] == [["c"], ["b"]]
    assert [call["about"] for call in second.data["calls"]] == [["a"]]


def test_a_cursor_of_a_command_that_is_not_in_the_log_is_refused(tool: Tool) -> None:
    ran = tool("log", "--after", "log:deadbeefdeadbeef")

    assert ran.code == "VALIDATION_ERROR"
    assert "next_cursor" in ran.error["suggestion"]


def test_long_texts_and_many_subjects_are_shown_in_part(tool: Tool) -> None:
    line = {
        "at": utc(),
        "command": "config.get",
        "exit_code": 0,
        "duration_ms": 1,
        "request_id": "r1",
        "cwd": "/" + "d" * 5000,
        "about": ["k" * 5000] * 50,
    }
    directory = state_directory()
    directory.mkdir(parents=True, mode=0o700)
    (directory / "calls.jsonl").write_text(f"{json.dumps(line)}\n")

    (call,) = logged(tool, "--command", "config.get")

    assert call["cwd"] == "/" + "d" * 199
    assert call["about"] == ["k" * 200] * 10


def test_help_and_the_version_are_not_logged_and_a_dry_run_is(
    tool: Tool,
    workspace: Path,
    home: Path,
) -> None:
    tool("config", "set", "a", "1", "--help")
    tool("--version")
    assert list(home.rglob("calls.jsonl")) == []

    tool("config", "set", "a", "1", "--dry-run")

    (call,) = logged(tool)
    assert call["dry_run"] is True
    assert "a = 1" not in (workspace / "tool.toml").read_text()


def test_the_log_can_be_switched_off(tool: Tool) -> None:
    tool("config", "set", "call_log=off")
    tool("config", "list")
    refused = tool("config", "set", "call_log=maybe")

    assert commands_in(tool) == ["config.set"]
    assert "on or off" in refused.error["suggestion"]


@pytest.mark.parametrize("state", ["a file", "waits", "/proc/self/fd", "relative"])
def test_a_log_that_cannot_be_written_does_not_fail_the_command(
    tool: Tool,
    tmp_path: Path,
    state: str,
) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "waits").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "waits" / "calls.jsonl")
    directory = state if state == "relative" else str(tmp_path / state)

    ran = tool.start("config", "list", environ={"TOOL_STATE_DIR": directory})

    assert ran.communicate()[1] == b""
    assert ran.returncode == 0


def test_a_log_that_is_not_there_is_empty(tool: Tool) -> None:
    data = tool("log", TOOL_STATE_DIR="/proc/self/no").data

    assert data == {"calls": []}


def test_a_command_whose_response_nobody_reads_is_logged(tool: Tool) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = tool.start("config", "set", "a", "1", stdin=writer)
    assert process.stdout
    process.stdout.close()
    process.wait()
    os.close(writer)

    assert commands_in(tool) == ["config.set"]
