"""tool status"""

from pathlib import Path

import pytest

from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool


@pytest.mark.usefixtures("workspace")
def test_it_shows_the_workspace_the_changed_settings_and_the_session(
    tool: Tool,
    workspace: Path,
) -> None:
    tool("config", "set", "jobs", "3")

    status = tool("status", "--session-id", "s-1").data

    assert status["workspace"] == status["directory"] == str(workspace)
    assert status["settings_file"]["path"] == str(workspace / "tool.toml")
    assert status["session_id"] == "s-1"
    assert status["settings"] == [{"key": "jobs", "value": 3, "source": "project"}]
    assert status["running"] == []


def test_outside_a_workspace_it_shows_the_file_of_the_user(tool: Tool) -> None:
    status = tool("status").data

    assert "workspace" not in status
    assert status["settings_file"]["name"] == "personal settings"
    assert "session_id" not in status


def test_the_options_of_the_command_itself_are_no_settings(tool: Tool) -> None:
    ran = tool("status", "--format", "text", "--lock-timeout", "5s")

    assert "setting " not in ran.text
    assert "running            nothing" in ran.text


def test_it_shows_which_commands_are_running(tool: Tool, workspace: Path) -> None:
    locks = workspace / ".tool" / "locks"
    locks.mkdir(parents=True, mode=0o700)

    with holding(locks / "build.lock"):
        status = tool("status").data
        text = tool("status", "--format", "text").text

    assert [each["lock"] for each in status["running"]] == ["build"]
    assert status["running_count"] == 1
    assert "holds the lock build" in text


@pytest.mark.usefixtures("workspace")
def test_the_response_is_small(tool: Tool) -> None:
    tool("config", "set", "jobs", "3")

    assert len(tool("status").stdout) < 2_000
