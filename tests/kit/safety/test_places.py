"""Where things are kept, and what is refused there."""

import os
from pathlib import Path

import pytest

from sampletool.kit.contract.file_errors import UnsafeDirectory
from sampletool.kit.safety.places import config_file, find_workspace, private_directory, session_root, state_directory
from sampletool.kit.testing.tool import Tool


def test_tool_variables_beat_xdg_which_beats_the_platform(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TOOL_CONFIG_DIR", str(tmp_path / "mine"))
    assert config_file() == tmp_path / "mine" / "config.toml"

    monkeypatch.delenv("TOOL_CONFIG_DIR")
    assert config_file() == Path(os.environ["XDG_CONFIG_HOME"]) / "sampletool" / "config.toml"

    monkeypatch.delenv("XDG_CONFIG_HOME")
    assert str(config_file()).startswith(os.environ["HOME"])
    assert config_file().name == "config.toml"


def test_a_relative_place_is_refused_or_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert str(state_directory()).startswith(os.environ["HOME"])

    monkeypatch.setenv("TOOL_STATE_DIR", "relative")
    with pytest.raises(UnsafeDirectory, match="TOOL_STATE_DIR"):
        state_directory()


def test_users_of_one_machine_do_not_meet_in_the_temporary_directory() -> None:
    assert session_root() == Path(os.environ["TMPDIR"]) / f"tool-{os.geteuid()}"


def test_a_private_directory_is_made_private(tmp_path: Path) -> None:
    made = private_directory(tmp_path / "a" / "b")

    assert made.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("trap", ["link", "file", "writable", "dangling"])
def test_a_trap_in_its_place_is_refused(tmp_path: Path, trap: str) -> None:
    place = tmp_path / "place"
    if trap == "link":
        (tmp_path / "elsewhere").mkdir()
        place.symlink_to(tmp_path / "elsewhere")
    elif trap == "dangling":
        place.symlink_to(tmp_path / "nowhere")
    elif trap == "file":
        place.touch()
    else:
        place.mkdir()
        place.chmod(0o777)

    with pytest.raises(UnsafeDirectory):
        private_directory(place)


def test_another_user_s_directory_and_workspace_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tool.toml").touch()
    (tmp_path / "place").mkdir()
    if os.geteuid() == 0:
        os.chown(tmp_path / "tool.toml", 12345, 12345)
        os.chown(tmp_path / "place", 12345, 12345)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)

    with pytest.raises(UnsafeDirectory, match="another user"):
        find_workspace(tmp_path)
    with pytest.raises(UnsafeDirectory, match="another user"):
        private_directory(tmp_path / "place")


def test_the_workspace_is_the_nearest_one_above(tmp_path: Path) -> None:
    (tmp_path / "a" / "b" / "c").mkdir(parents=True)
    (tmp_path / "tool.toml").touch()
    (tmp_path / "a" / "tool.toml").touch()

    assert find_workspace(tmp_path / "a" / "b" / "c") == tmp_path / "a"


@pytest.mark.homeless
def test_without_home_the_settings_are_still_found_or_refused_by_name(tool: Tool) -> None:
    environ = {name: value for name, value in tool.environ.items() if name not in ("HOME", "XDG_CONFIG_HOME")}

    ran = Tool({**environ, "PYTHONPATH": tool.environ["PYTHONPATH"]}, tool.cwd)("config", "path")

    assert ran.status in (0, 7)
    assert ran.answer
