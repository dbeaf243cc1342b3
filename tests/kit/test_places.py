"""Where things are kept, and what is refused there."""

import errno
import os
from pathlib import Path

import pytest

from sampletool.kit import places
from sampletool.kit.places import config_file, find_workspace, make_workspace_directory, session_root, state_directory
from sampletool.kit.safety.errors import UnsafeDirectory
from sampletool.kit.safety.private_directory import private_directory
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


def test_the_search_for_a_workspace_stops_before_a_ceiling_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tmp_path / "ceiling" / "a" / "b"
    start.mkdir(parents=True)
    (tmp_path / "tool.toml").touch()
    (tmp_path / "ceiling" / "tool.toml").touch()
    assert find_workspace(start) == tmp_path / "ceiling"

    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", f"/elsewhere:{tmp_path / 'ceiling'}")

    assert find_workspace(start) is None
    (tmp_path / "ceiling" / "a" / "tool.toml").touch()
    assert find_workspace(start) == tmp_path / "ceiling" / "a"


def test_a_ceiling_directory_that_is_the_current_one_is_searched_but_nothing_above_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    current = tmp_path / "current"
    current.mkdir()
    (tmp_path / "tool.toml").touch()
    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", str(current))

    assert find_workspace(current) is None
    (current / "tool.toml").touch()
    assert find_workspace(current) == current


def test_a_ceiling_directory_may_be_named_by_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real" / "work").mkdir(parents=True)
    (tmp_path / "real" / "tool.toml").touch()
    (tmp_path / "link").symlink_to("real")

    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", str(tmp_path / "link"))

    assert find_workspace(tmp_path / "real" / "work") is None


def test_a_relative_ceiling_directory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "tool.toml").touch()
    monkeypatch.chdir(tmp_path)

    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", ".")

    assert find_workspace(tmp_path / "work") == tmp_path


def test_a_relative_temporary_directory_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "relative").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", "relative")

    assert session_root() == Path("/tmp") / f"tool-{os.geteuid()}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to another user")
def test_a_link_of_another_user_makes_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").touch()
    (tmp_path / "tool.toml").symlink_to("ours.toml")
    os.lchown(tmp_path / "tool.toml", 12345, 12345)

    with pytest.raises(UnsafeDirectory, match="another user"):
        find_workspace(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make what belongs to another user")
def test_a_link_to_the_file_of_another_user_makes_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "theirs.toml").touch()
    os.chown(tmp_path / "theirs.toml", 12345, 12345)
    (tmp_path / "tool.toml").symlink_to("theirs.toml")

    with pytest.raises(UnsafeDirectory, match="another user"):
        find_workspace(tmp_path)


@pytest.mark.parametrize(
    "whose", ["another user", "a link of another user", "others may write to it", "others may write where a link leads"]
)
def test_settings_where_others_could_put_theirs_are_neither_read_nor_written(
    tool: Tool, home: Path, whose: str
) -> None:
    config = home / "xdg_config_home" / "sampletool"
    real = home / "real" if "link" in whose else config
    real.mkdir(mode=0o700)
    (real / "config.toml").write_text("jobs = 7\n")
    if "link" in whose:
        config.symlink_to(real)
    if "user" not in whose:
        real.chmod(0o770)
    elif os.geteuid() == 0:
        os.lchown(config, 12345, 12345)
    else:
        pytest.skip("only root can make what belongs to another user")

    for call in (["set", "a", "1"], ["get", "jobs"], ["list"], ["unset", "jobs"]):
        ran = tool("config", *call)
        assert (ran.status, ran.code) == (7, "UNSAFE_DIRECTORY")
        assert ("another user" if "user" in whose else "others may write to it") in ran.error["message"]
    assert os.listdir(real) == ["config.toml"]


def test_a_link_of_ours_to_the_settings_is_followed(tool: Tool, home: Path) -> None:
    (home / "dotfiles").mkdir(mode=0o755)
    (home / "xdg_config_home" / "sampletool").symlink_to(home / "dotfiles")

    assert tool("config", "set", "a", "1").status == 0

    assert (home / "dotfiles" / "config.toml").read_text() == "a = 1\n"


def test_the_workspace_s_own_directory_is_hidden_from_git_also_after_a_full_disk(tmp_path: Path) -> None:
    made = make_workspace_directory(tmp_path)
    assert (made / ".gitignore").read_text() == "*\n"

    (made / ".gitignore").write_text("")
    make_workspace_directory(tmp_path)
    assert (made / ".gitignore").read_text() == "*\n"

    (made / ".gitignore").write_text("!kept\n")
    make_workspace_directory(tmp_path)
    assert (made / ".gitignore").read_text() == "!kept\n"


@pytest.mark.parametrize("command", [["config", "set", "a", "1"], ["lock", "list"]])
@pytest.mark.parametrize("kind", ["fifo", "link", "dangling link", "directory"])
def test_what_somebody_put_in_place_of_the_git_ignore_is_left_alone(
    tool: Tool, workspace: Path, kind: str, command: list[str]
) -> None:
    """Naive: to open a FIFO waits until it has a reader, also after a signal and --timeout."""
    git_ignore = workspace / ".tool" / ".gitignore"
    git_ignore.parent.mkdir(mode=0o700, exist_ok=True)
    git_ignore.unlink(missing_ok=True)
    victim = workspace / "victim"
    if kind == "fifo":
        os.mkfifo(git_ignore)
    elif kind == "link":
        victim.touch()
        git_ignore.symlink_to(victim)
    elif kind == "dangling link":
        git_ignore.symlink_to(victim)
    else:
        git_ignore.mkdir()
    before = git_ignore.lstat()

    ran = tool(*command, "--timeout", "20s")

    assert ran.status == 0
    assert os.path.samestat(git_ignore.lstat(), before)
    assert not victim.exists() or victim.read_bytes() == b""


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_what_appears_in_place_of_the_git_ignore_is_not_written_to(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It appears after the tool has looked."""
    git_ignore = private_directory(tmp_path / ".tool") / ".gitignore"
    if kind == "fifo":
        os.mkfifo(git_ignore)
    else:
        git_ignore.symlink_to(tmp_path / "victim")
    monkeypatch.setattr(places, "_is_missing_or_empty", lambda _path: True)

    number = errno.ENXIO if kind == "fifo" else errno.ELOOP
    with pytest.raises(OSError, match=os.strerror(number)):
        make_workspace_directory(tmp_path)

    assert not (tmp_path / "victim").exists()


# A settings file that all users can write to


@pytest.fixture(params=["project", "user", "project, by a link", "user, by a link"])
def settings_file(request: pytest.FixtureRequest, tool: Tool, home: Path) -> Path:
    """Return a settings file with `jobs = 7`, which the tool reads, directly or by a link."""
    kind = str(request.param)
    if "user" in kind:
        place = home / "xdg_config_home" / "sampletool" / "config.toml"
        place.parent.mkdir(mode=0o700)
        content = "jobs = 7\n"
    else:
        place = tool.cwd / "tool.toml"
        content = "[settings]\njobs = 7\n"
    if "link" not in kind:
        place.write_text(content)
        return place
    target = home / "linked.toml"
    target.write_text(content)
    place.symlink_to(target)
    return target


@pytest.mark.parametrize("mode", [0o666, 0o602])
def test_settings_that_all_users_can_write_to_are_neither_read_nor_written(
    tool: Tool, settings_file: Path, mode: int
) -> None:
    settings_file.chmod(mode)
    before = settings_file.read_text()

    for arguments in (["set", "a", "1"], ["get", "jobs"], ["list"], ["unset", "jobs"]):
        ran = tool("config", *arguments)
        assert (ran.status, ran.code) == (7, "UNSAFE_DIRECTORY")
        assert f"every user can write to it (mode 0{mode:o})" in ran.error["message"]
        assert ran.error["suggestion"].endswith(f"chmod o-w {settings_file.resolve()}")

    assert settings_file.read_text() == before


def test_a_device_as_settings_file_is_refused_without_a_hint_to_change_its_mode(tool: Tool, workspace: Path) -> None:
    settings_file = workspace / "tool.toml"
    settings_file.unlink(missing_ok=True)
    settings_file.symlink_to(os.devnull)

    ran = tool("config", "list")

    assert (ran.status, ran.code) == (2, "UNSAFE_PATH")
    assert "not a regular file" in ran.error["message"]
    assert "chmod" not in ran.error["suggestion"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o660])
def test_settings_that_their_group_can_write_to_are_read_and_written(
    tool: Tool, settings_file: Path, mode: int
) -> None:
    """With the umask 002, each new file is so, and the group has one member."""
    settings_file.chmod(mode)

    assert tool("config", "get", "jobs").data["value"] == 7
    assert tool("config", "set", "jobs", "8").data["effect"] == "updated"


@pytest.mark.homeless
def test_without_home_the_settings_are_still_found_or_refused_by_name(tool: Tool) -> None:
    environ = {name: value for name, value in tool.environ.items() if name not in ("HOME", "XDG_CONFIG_HOME")}

    ran = Tool({**environ, "PYTHONPATH": tool.environ["PYTHONPATH"]}, tool.cwd)("config", "path")

    assert ran.status in (0, 7)
    assert ran.answer
