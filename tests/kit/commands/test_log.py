"""tool log"""

import os
from pathlib import Path
from typing import Any

from sampletool.kit.testing.tool import Tool


def logged(tool: Tool, *options: str) -> list[dict[str, Any]]:
    return list(tool("log", *options).data["calls"])


def test_each_call_leaves_a_line_that_says_what_it_was_about_and_how_it_ended(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "api.url", "http://there", "--session-id", "s1", TOOL_TRACE_ID="t1")
    tool("config", "get", "nope")

    failed, done = logged(tool)

    assert (done["command"], done["exit_code"], done["effect"]) == ("config.set", 0, "created")
    assert (done["session_id"], done["trace_id"], done["cwd"]) == ("s1", "t1", str(workspace))
    assert {"api.url", str(workspace / "tool.toml")} <= set(done["about"])
    assert (failed["command"], failed["exit_code"], failed["code"]) == ("config.get", 5, "KEY_NOT_FOUND")
    assert failed["about"] == ["nope"]


def test_no_value_is_logged(tool: Tool, workspace: Path, home: Path) -> None:
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
    assert workspace


def test_the_list_can_be_narrowed(tool: Tool, workspace: Path) -> None:
    tool("config", "list")
    tool("config", "get", "nope")
    tool("lock", "list")

    assert [call["command"] for call in logged(tool, "--failed")] == ["config.get"]
    assert [call["command"] for call in logged(tool, "--command", "lock.list")] == ["lock.list"]
    assert [call["command"] for call in logged(tool, "--limit", "1", "--since", "1h")] == ["log"]
    assert logged(tool, "--command", "no.such") == []
    assert tool("log", "--since", "0").code == "USAGE_ERROR"
    assert workspace


def test_a_page_goes_on_behind_a_call_and_not_behind_one_that_is_not_in_the_log(tool: Tool, workspace: Path) -> None:
    for key in ("a", "b", "c"):
        tool("config", "get", key)

    first = tool("log", "--limit", "2")
    second = tool("log", "--limit", "1", "--after", first.meta["next_cursor"], "--command", "config.get")
    wrong = tool("log", "--after", "after:deadbeefdeadbeef")

    assert [call["about"] for call in first.data["calls"]] == [["c"], ["b"]]
    assert [call["about"] for call in second.data["calls"]] == [["a"]]
    assert wrong.code == "VALIDATION_ERROR"
    assert "next_cursor" in wrong.error["suggestion"]
    assert workspace


def test_a_forecast_help_and_completion(tool: Tool, workspace: Path, home: Path) -> None:
    tool("config", "set", "a", "1", "--help")
    tool("--version")
    assert list(home.rglob("calls.jsonl")) == []

    tool("config", "set", "a", "1", "--dry-run")

    (call,) = logged(tool)
    assert call["dry_run"] is True
    assert "a = 1" not in (workspace / "tool.toml").read_text()


def test_it_can_be_switched_off(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "call_log=off")
    tool("config", "list")

    assert [call["command"] for call in logged(tool)] == ["config.set"]
    assert "on or off" in tool("config", "set", "call_log=maybe").error["suggestion"]
    assert workspace


def test_a_log_that_cannot_be_written_is_no_reason_to_fail(tool: Tool, workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "waits").mkdir(mode=0o700)
    os.mkfifo(tmp_path / "waits" / "calls.jsonl")
    for state in (str(tmp_path / "a file"), str(tmp_path / "waits"), "/proc/self/fd", "relative"):
        ran = tool.start("config", "list", environ={"TOOL_STATE_DIR": state})
        assert ran.communicate()[1] == b""
        assert ran.returncode == 0
    assert tool("log", TOOL_STATE_DIR="/proc/self/no").data == {"calls": []}
    assert workspace


def test_a_call_whose_answer_nobody_reads_is_logged(tool: Tool, workspace: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = tool.start("config", "set", "a", "1", stdin=writer)
    assert process.stdout
    process.stdout.close()
    process.wait()
    os.close(writer)

    assert [call["command"] for call in logged(tool)] == ["config.set"]
    assert workspace
