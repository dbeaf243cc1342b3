"""sampletool/kit/places.py: where the tool keeps its files, and which places it refuses."""

import errno
import os
import pwd
import stat
import sys
from pathlib import Path

import pytest

from sampletool.kit import places
from sampletool.kit.contract.errors import ToolError
from sampletool.kit.places import (
    all_locks,
    config_file,
    find_workspace,
    home_directory,
    make_workspace_directory,
    session_root,
    state_directory,
)
from sampletool.kit.safety.errors import UnsafeDirectory, UnsafePath
from sampletool.kit.safety.private_directory import private_directory
from sampletool.kit.testing.tool import Tool

_ANOTHER_UID = 12345

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")


# Directories from the environment


def test_the_tool_s_variable_comes_before_that_of_xdg(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("TOOL_CONFIG_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))

    assert config_file() == tmp_path / "mine" / "config.toml"


def test_the_variable_of_xdg_comes_before_the_home_directory(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))

    assert config_file() == tmp_path / "xdg" / "sampletool" / "config.toml"


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have other places")
@pytest.mark.parametrize("xdg_value", [None, "", "relative"])
def test_without_a_usable_variable_the_directories_are_in_the_home_directory(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    xdg_value: str | None,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        if xdg_value is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, xdg_value)

    assert config_file() == tmp_path / ".config" / "sampletool" / "config.toml"
    assert state_directory() == tmp_path / ".local" / "state" / "sampletool"


def test_the_hand_built_directories_are_those_of_platformdirs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("XDG_STATE_HOME")
    hand_built = (config_file(), state_directory())

    monkeypatch.setattr(places, "_place_on_linux", places._place_elsewhere)

    assert (config_file(), state_directory()) == hand_built


def test_a_relative_directory_in_the_tool_s_variable_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_STATE_DIR", "relative")

    with pytest.raises(ToolError, match="TOOL_STATE_DIR is not an absolute path") as caught:
        state_directory()

    assert caught.value.code == "UNSAFE_DIRECTORY"
    assert caught.value.suggestion == "Set the variable TOOL_STATE_DIR to an absolute path."


def test_a_relative_home_directory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", "relative")

    with pytest.raises(ToolError, match="the home directory is not an absolute path") as caught:
        config_file()

    assert caught.value.suggestion == "Set the variable HOME to an absolute path."


@pytest.mark.parametrize("value", [None, ""])
def test_without_home_the_user_database_has_the_home_directory(
    monkeypatch: pytest.MonkeyPatch,
    value: str | None,
) -> None:
    """An empty HOME does not mean the root directory."""
    if value is None:
        monkeypatch.delenv("HOME")
    else:
        monkeypatch.setenv("HOME", value)

    assert home_directory() == Path(pwd.getpwuid(os.geteuid()).pw_dir)


@pytest.mark.skipif(sys.platform != "linux", reason="platformdirs decides elsewhere")
def test_a_user_without_any_home_directory_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.delenv("HOME")
    uid_of_no_user = 4_000_000
    monkeypatch.setattr(os, "geteuid", lambda: uid_of_no_user)

    assert home_directory() is None
    with pytest.raises(ToolError, match="because HOME is not set") as caught:
        config_file()

    assert caught.value.suggestion == "Set the variable HOME to an absolute path."


@pytest.mark.homeless
@pytest.mark.parametrize("value", [None, ""])
def test_a_command_works_without_home(tool: Tool, value: str | None) -> None:
    tool.environ.pop("HOME")
    if value is not None:
        tool.environ["HOME"] = value

    ran = tool("config", "path")

    assert ran.status == 0


# Sessions


def test_the_sessions_of_each_user_have_a_directory_of_their_own() -> None:
    assert session_root() == Path(os.environ["TMPDIR"]) / f"tool-{os.geteuid()}"


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP"])
def test_each_variable_for_the_temporary_directory_is_read(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    name: str,
) -> None:
    monkeypatch.delenv("TMPDIR")
    monkeypatch.setenv(name, str(tmp_path))

    assert session_root().parent == tmp_path


def test_tmpdir_comes_before_temp_and_temp_before_tmp(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    for name in ("TMPDIR", "TEMP", "TMP"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))

    assert session_root().parent == tmp_path / "TMPDIR"
    monkeypatch.delenv("TMPDIR")
    assert session_root().parent == tmp_path / "TEMP"


@pytest.mark.parametrize("value", ["relative", "/nowhere", ""])
def test_an_unusable_temporary_directory_is_ignored(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    value: str,
) -> None:
    (tmp_path / "relative").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", value)

    assert session_root().parent == Path("/tmp")


# The search for a workspace


def test_the_nearest_directory_with_a_settings_file_is_the_workspace(tmp_path: Path) -> None:
    start = tmp_path / "a" / "b" / "c"
    start.mkdir(parents=True)
    (tmp_path / "tool.toml").touch()
    (tmp_path / "a" / "tool.toml").touch()

    assert find_workspace(start) == tmp_path / "a"


def test_where_no_directory_has_a_settings_file_there_is_no_workspace(tmp_path: Path) -> None:
    assert find_workspace(tmp_path) is None


@pytest.mark.parametrize("target", ["missing.toml", "file/missing.toml"])
def test_a_settings_file_that_is_a_dangling_link_is_an_error(tmp_path: Path, target: str) -> None:
    """Naive: the settings of the directory above are read and changed instead."""
    start = tmp_path / "work"
    start.mkdir()
    (start / "file").touch()
    (tmp_path / "tool.toml").touch()
    (start / "tool.toml").symlink_to(target)

    with pytest.raises(UnsafePath) as caught:
        find_workspace(start)

    assert caught.value.path == str(start / "tool.toml")
    assert caught.value.reason == f"it is a link to {target}, which does not exist"


def test_a_command_in_a_directory_with_a_dangling_link_changes_no_other_settings(
    tool: Tool,
    home: Path,
) -> None:
    (tool.cwd / "tool.toml").symlink_to("missing.toml")

    ran = tool("config", "set", "a", "1")

    assert (ran.status, ran.code) == (2, "UNSAFE_PATH")
    assert str(tool.cwd / "tool.toml") in ran.error["message"]
    assert list(home.rglob("config.toml")) == []
    assert not (tool.cwd / "missing.toml").exists()


def test_a_settings_file_that_is_removed_during_the_search_is_no_settings_file(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "tool.toml"
    file.touch()
    really_lstat = Path.lstat

    def lstat_then_remove(path: Path) -> os.stat_result:
        status = really_lstat(path)
        path.unlink()
        return status

    with monkeypatch.context() as patched:
        patched.setattr(Path, "lstat", lstat_then_remove)
        patched.setenv("TOOL_CEILING_DIRECTORIES", str(tmp_path))
        workspace = find_workspace(tmp_path)

    assert workspace is None


def test_a_directory_that_cannot_be_searched_is_an_error_and_not_skipped(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: Path) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "lstat", refuse)

    with pytest.raises(PermissionError):
        find_workspace(tmp_path)


# Ceilings


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """Return the directory ceiling/a/b. There is a settings file in ceiling/ and above it."""
    start = tmp_path / "ceiling" / "a" / "b"
    start.mkdir(parents=True)
    (tmp_path / "tool.toml").touch()
    (tmp_path / "ceiling" / "tool.toml").touch()
    return start


def test_the_search_stops_before_a_ceiling_directory(
    nested: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert find_workspace(nested) == tmp_path / "ceiling"

    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", f"/elsewhere:{tmp_path / 'ceiling'}")

    assert find_workspace(nested) is None


def test_a_workspace_below_the_ceiling_is_found(
    nested: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", str(tmp_path / "ceiling"))

    (nested.parent / "tool.toml").touch()

    assert find_workspace(nested) == nested.parent


def test_the_current_directory_is_searched_even_if_it_is_a_ceiling(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    current = tmp_path / "current"
    current.mkdir()
    (tmp_path / "tool.toml").touch()
    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", str(current))

    assert find_workspace(current) is None
    (current / "tool.toml").touch()
    assert find_workspace(current) == current


def test_a_ceiling_directory_can_be_named_by_a_link(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "real" / "work").mkdir(parents=True)
    (tmp_path / "real" / "tool.toml").touch()
    (tmp_path / "link").symlink_to("real")

    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", str(tmp_path / "link"))

    assert find_workspace(tmp_path / "real" / "work") is None


def test_a_relative_ceiling_directory_is_ignored(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "tool.toml").touch()
    monkeypatch.chdir(tmp_path)

    monkeypatch.setenv("TOOL_CEILING_DIRECTORIES", ".")

    assert find_workspace(tmp_path / "work") == tmp_path


# Files of other users


def test_a_settings_file_of_another_user_makes_no_workspace(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "tool.toml"
    file.touch()
    _give_away(file, monkeypatch)

    with pytest.raises(UnsafeDirectory, match=r"tool\.toml belongs to another user"):
        find_workspace(tmp_path)


@needs_root
def test_a_link_of_another_user_makes_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "ours.toml").touch()
    (tmp_path / "tool.toml").symlink_to("ours.toml")
    os.lchown(tmp_path / "tool.toml", _ANOTHER_UID, _ANOTHER_UID)

    with pytest.raises(UnsafeDirectory, match="another user"):
        find_workspace(tmp_path)


@needs_root
def test_a_link_to_the_file_of_another_user_makes_no_workspace(tmp_path: Path) -> None:
    (tmp_path / "theirs.toml").touch()
    os.chown(tmp_path / "theirs.toml", _ANOTHER_UID, _ANOTHER_UID)
    (tmp_path / "tool.toml").symlink_to("theirs.toml")

    with pytest.raises(UnsafeDirectory, match="another user"):
        find_workspace(tmp_path)


def test_a_directory_of_another_user_is_not_used(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    _give_away(place, monkeypatch)

    with pytest.raises(UnsafeDirectory, match="another user"):
        private_directory(place)


def _give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a file to another user. Only root can; otherwise, make this process another user."""
    if os.geteuid() == 0:
        os.chown(path, _ANOTHER_UID, _ANOTHER_UID)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: _ANOTHER_UID)


# The directory of the user's settings


@pytest.fixture
def config_directory(home: Path) -> Path:
    """Return the directory of the user's settings, with `jobs = 7`."""
    directory = home / "xdg_config_home" / "sampletool"
    directory.mkdir(mode=0o700)
    (directory / "config.toml").write_text("jobs = 7\n")
    return directory


def _replace_by_link(directory: Path) -> Path:
    """Move the directory to another place, leave a link to it, and return the new place."""
    target = directory.parent / "target"
    directory.rename(target)
    directory.symlink_to(target)
    return target


def _assert_settings_are_refused(tool: Tool, reason: str) -> None:
    for arguments in (["set", "a", "1"], ["get", "jobs"], ["list"], ["unset", "jobs"]):
        ran = tool("config", *arguments)
        assert (ran.status, ran.code) == (7, "UNSAFE_DIRECTORY")
        assert reason in ran.error["message"]


def test_a_config_directory_that_others_can_write_to_is_refused(
    tool: Tool,
    config_directory: Path,
) -> None:
    config_directory.chmod(0o770)

    _assert_settings_are_refused(tool, "others may write to it")

    assert os.listdir(config_directory) == ["config.toml"]


def test_a_link_to_a_config_directory_that_others_can_write_to_is_refused(
    tool: Tool,
    config_directory: Path,
) -> None:
    target = _replace_by_link(config_directory)
    target.chmod(0o770)

    _assert_settings_are_refused(tool, "others may write to it")

    assert os.listdir(target) == ["config.toml"]


@needs_root
def test_a_config_directory_of_another_user_is_refused(tool: Tool, config_directory: Path) -> None:
    os.chown(config_directory, _ANOTHER_UID, _ANOTHER_UID)

    _assert_settings_are_refused(tool, "another user")

    assert os.listdir(config_directory) == ["config.toml"]


@needs_root
@pytest.mark.parametrize("owner", [0, _ANOTHER_UID])
def test_a_config_directory_of_the_user_or_of_root_is_accepted(
    config_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: int,
) -> None:
    os.chown(config_directory, owner, owner)
    refused = None

    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: _ANOTHER_UID)
        try:
            file = config_file()
        except UnsafeDirectory as error:
            refused = error
    os.chown(config_directory, 0, 0)

    assert refused is None
    assert file == config_directory / "config.toml"


@needs_root
def test_another_user_s_link_to_a_config_directory_is_refused(
    tool: Tool,
    config_directory: Path,
) -> None:
    target = _replace_by_link(config_directory)
    os.lchown(config_directory, _ANOTHER_UID, _ANOTHER_UID)

    _assert_settings_are_refused(tool, "another user")

    assert os.listdir(target) == ["config.toml"]


def test_a_link_to_a_config_directory_that_only_the_user_can_write_to_is_followed(
    tool: Tool,
    config_directory: Path,
) -> None:
    target = _replace_by_link(config_directory)
    target.chmod(0o755)

    assert tool("config", "set", "a", "1").status == 0

    assert (target / "config.toml").read_text() == "jobs = 7\na = 1\n"


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
    tool: Tool,
    settings_file: Path,
    mode: int,
) -> None:
    settings_file.chmod(mode)
    before = settings_file.read_text()

    for arguments in (["set", "a", "1"], ["get", "jobs"], ["list"], ["unset", "jobs"]):
        ran = tool("config", *arguments)
        assert (ran.status, ran.code) == (7, "UNSAFE_DIRECTORY")
        assert f"every user can write to it (mode 0{mode:o})" in ran.error["message"]
        assert ran.error["suggestion"].endswith(f"chmod o-w {settings_file.resolve()}")

    assert settings_file.read_text() == before


def test_a_device_as_settings_file_is_refused_without_a_hint_to_change_its_mode(
    tool: Tool,
    workspace: Path,
) -> None:
    settings_file = workspace / "tool.toml"
    settings_file.unlink(missing_ok=True)
    settings_file.symlink_to(os.devnull)

    ran = tool("config", "list")

    assert (ran.status, ran.code) == (2, "UNSAFE_PATH")
    assert "not a regular file" in ran.error["message"]
    assert "chmod" not in ran.error["suggestion"]


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o660])
def test_settings_that_their_group_can_write_to_are_read_and_written(
    tool: Tool,
    settings_file: Path,
    mode: int,
) -> None:
    """With the umask 002, every new file has such a mode, and the group has one member."""
    settings_file.chmod(mode)

    assert tool("config", "get", "jobs").data["value"] == 7
    assert tool("config", "set", "jobs", "8").data["effect"] == "updated"


# .tool/.gitignore


def test_git_ignores_the_tool_s_directory_in_a_workspace(tmp_path: Path) -> None:
    directory = make_workspace_directory(tmp_path)

    assert (directory / ".gitignore").read_text() == "*\n"
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_git_ignore_that_a_full_disk_left_empty_is_written_again(tmp_path: Path) -> None:
    git_ignore = make_workspace_directory(tmp_path) / ".gitignore"
    git_ignore.write_text("")

    make_workspace_directory(tmp_path)

    assert git_ignore.read_text() == "*\n"


def test_a_git_ignore_with_other_content_is_left_alone(tmp_path: Path) -> None:
    git_ignore = make_workspace_directory(tmp_path) / ".gitignore"
    git_ignore.write_text("!kept\n")

    make_workspace_directory(tmp_path)

    assert git_ignore.read_text() == "!kept\n"


@pytest.mark.parametrize("command", [["config", "set", "a", "1"], ["lock", "list"]])
@pytest.mark.parametrize("kind", ["fifo", "link", "dangling link", "directory"])
def test_what_somebody_put_in_place_of_the_git_ignore_is_left_alone(
    tool: Tool,
    workspace: Path,
    kind: str,
    command: list[str],
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


@pytest.fixture
def git_ignore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of .tool/.gitignore, which was missing when the tool looked."""
    monkeypatch.setattr(places, "_is_missing_or_empty", lambda _path: True)
    return private_directory(tmp_path / ".tool") / ".gitignore"


def test_a_fifo_that_appears_in_place_of_the_git_ignore_is_not_waited_for(
    git_ignore: Path,
    tmp_path: Path,
) -> None:
    os.mkfifo(git_ignore)

    with pytest.raises(OSError, match=os.strerror(errno.ENXIO)):
        make_workspace_directory(tmp_path)


@pytest.mark.parametrize("content", [None, "precious\n"])
def test_a_link_that_appears_in_place_of_the_git_ignore_is_not_followed(
    git_ignore: Path,
    tmp_path: Path,
    content: str | None,
) -> None:
    victim = tmp_path / "victim"
    if content is not None:
        victim.write_text(content)
    git_ignore.symlink_to(victim)

    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)):
        make_workspace_directory(tmp_path)

    if content is None:
        assert not victim.exists()
    else:
        assert victim.read_text() == content


# Lock files


def test_the_locks_of_a_workspace_come_before_those_of_the_user(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TOOL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TOOL_CONFIG_DIR", str(tmp_path / "config"))
    workspace = tmp_path / "work"
    names = ["work/.tool/locks/w.lock", "state/locks/s.lock", "config/.c.lock"]
    for name in names:
        (tmp_path / name).parent.mkdir(mode=0o700, parents=True)
        (tmp_path / name).touch()
    (tmp_path / "state" / "locks" / "directory.lock").mkdir()

    in_workspace = [path.relative_to(tmp_path).as_posix() for path in all_locks(workspace)]
    outside = [path.relative_to(tmp_path).as_posix() for path in all_locks(None)]

    assert in_workspace == names
    assert outside == names[1:]
