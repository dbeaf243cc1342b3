"""With -vv, the command shows on stderr where its settings come from."""

from pathlib import Path

from sampletool.kit.testing.tool import Tool


def test_the_files_and_the_sources_that_win_are_shown(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "jobs=2")

    ran = tool("config", "get", "jobs", "-vv", TOOL_CALL_LOG="off")

    lines = ran.stderr.decode().splitlines()
    settings_file = workspace / "tool.toml"
    assert f"Settings file of the project: {settings_file} is read" in lines
    assert any(line.startswith("Settings file of the user:") for line in lines)
    assert any(line.endswith("does not exist") for line in lines)
    assert f"Setting jobs: from {settings_file}" in lines
    assert "Setting call_log: from TOOL_CALL_LOG" in lines
    assert lines[-1] == "All other settings have their defaults."
    assert [line for line in lines if line.startswith("Setting ") and "default" in line] == []


def test_one_v_does_not_show_them_and_quiet_hides_them(tool: Tool) -> None:
    assert tool("config", "get", "jobs", "-v").stderr == b""
    assert tool("config", "get", "jobs", "-vv", "--quiet").stderr == b""


def test_values_are_not_shown(tool: Tool) -> None:
    ran = tool("config", "get", "jobs", "-vv", TOOL_STORE="redis://user:s3cret@localhost")

    assert b"TOOL_STORE" in ran.stderr
    assert b"s3cret" not in ran.stderr


def test_a_wrong_file_is_reported_and_stops_no_command_that_needs_none(
    tool: Tool,
    workspace: Path,
) -> None:
    (workspace / "tool.toml").write_text("[settings\n")

    ran = tool("config", "path", "-vv")

    assert ran.status == 0
    assert b"tool.toml" in ran.stderr
    assert b"All other settings" not in ran.stderr
