"""No change by anybody is lost, and what cannot be changed safely is left alone."""

import os
import signal
import stat
import tomllib
from functools import partial
from pathlib import Path

import pytest

from sampletool.kit.safety.errors import DeadlineExceeded, LockTimeout, UnsafePath
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.signals import Signals
from sampletool.kit.safety.toml_file import editing_toml, read_toml
from sampletool.kit.settings.toml_edit import set_value
from sampletool.kit.stepping.tracer import Event, SteppedProcess
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Ran, Tool

_NAIVE = """
import sys, tomllib
path, key, value = sys.argv[1:]
settings = tomllib.load(open(path, "rb"))["settings"]
settings[key] = int(value)
import os
with open(path + key, "w") as file:
    file.write("[settings]\\n" + "".join(f"{k} = {v}\\n" for k, v in settings.items()))
os.rename(path + key, path)
"""


@pytest.fixture
def file(workspace: Path) -> Path:
    (workspace / "tool.toml").write_text("[settings]\nlevel = 1\n")
    return workspace / "tool.toml"


def keys(file: Path) -> set[str]:
    return set(tomllib.loads(file.read_text())["settings"])


def test_two_naive_writers_met_at_the_rename_lose_a_change_every_time(file: Path) -> None:
    script = file.parent.parent / "naive.py"
    script.write_text(_NAIVE)
    for _ in range(scale(5, 20)):
        file.write_text("[settings]\nlevel = 1\n")
        with (
            SteppedProcess([str(script), str(file), "a", "1"], watch=file.parent, fork_server=fork_server()) as a,
            SteppedProcess([str(script), str(file), "b", "2"], watch=file.parent, fork_server=fork_server()) as b,
        ):
            a.run_until("os.rename")
            b.run_until("os.rename")
            a.finish()
            b.finish()

        assert keys(file) == {"level", "b"}


def test_two_of_ours_met_at_the_same_point_keep_both_every_time(tool: Tool, file: Path) -> None:
    def setting(key: str) -> SteppedProcess:
        return tool.stepped("config", "set", key, "1", watch=file.parent)

    for _ in range(scale(5, 20)):
        file.write_text("[settings]\nlevel = 1\n")
        with setting("a") as a, setting("b") as b:
            a.run_until("os.rename")
            b.run_until(lambda event: event.name == "fcntl.flock" and event.path.endswith(".lock"), times=2)
            assert "b" not in keys(file)
            a.finish()
            assert b.finish().status == 0

        assert keys(file) == {"level", "a", "b"}


def test_kill_9_at_every_point_leaves_the_old_or_the_new_file_and_the_next_set_works(tool: Tool, file: Path) -> None:
    old = file.read_text()
    outcomes, point = set(), 0
    while True:
        file.write_text(old)
        with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
            for _ in range(point):
                if stepped.at is not None:
                    stepped.step()
            if stepped.at is None:
                break
            stepped.kill()
        outcomes.add(file.read_text())
        point += scale(2, 1)
        if point % scale(6, 1) == 0:
            ran = tool("config", "set", "b", "2")
            assert ran.status == 0, ran
            assert "b" in keys(file)
            litter = [name for name in os.listdir(file.parent) if name.endswith(".tmp")]
            assert litter == [] or "recovered_from" not in ran.meta

    assert outcomes == {old, old + "a = 1\n"}
    assert point > 15


def test_the_link_of_a_linked_file_survives_and_both_ways_share_one_lock(tool: Tool, file: Path) -> None:
    elsewhere = file.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "tool.toml").symlink_to(file)

    results = tool.together([["-C", directory, "config", "set", f"{name}{n}", "1"] for n in range(4)
                             for name, directory in (("x", elsewhere), ("y", file.parent))])  # fmt: skip

    assert [ran.status for ran in results] == [0] * 8
    assert (elsewhere / "tool.toml").is_symlink()
    assert len(keys(file)) == 9


def test_a_dangling_link_is_written_through(tool: Tool, home: Path) -> None:
    config = home / "xdg_config_home" / "sampletool"
    config.mkdir()
    (config / "config.toml").symlink_to(config / "real.toml")

    assert tool("config", "set", "a", "1").status == 0

    assert (config / "config.toml").is_symlink()
    assert (config / "real.toml").read_text() == "a = 1\n"


def test_an_unchanged_value_writes_nothing(tool: Tool, file: Path) -> None:
    before = file.stat()

    ran = tool("config", "set", "level", "1")

    assert ran.data["effect"] == "unchanged"
    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_mode_byte_order_mark_and_line_ends_are_kept(tool: Tool, file: Path) -> None:
    file.write_bytes(b"\xef\xbb\xbf[settings]\r\nlevel = 1\r\n")
    file.chmod(0o640)

    tool("config", "set", "a", "1")

    assert file.read_bytes() == b"\xef\xbb\xbf[settings]\r\nlevel = 1\r\na = 1\r\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_a_hard_linked_file_is_changed_with_a_warning(tool: Tool, file: Path) -> None:
    os.link(file, file.parent / "other")

    ran = tool("config", "set", "a", "1")

    assert [warning["code"] for warning in ran.answer["warnings"]] == ["HARD_LINK"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"[settings\n", "INVALID_TOML"),
        (b"\xff\xfe", "INVALID_TOML"),
        (b"a = " + b"[" * 5000, "INVALID_TOML"),
        (b"a = " + b"[" * 200 + b"]" * 200, "INVALID_TOML"),
        (b"[settings]\n" + b".".join([b"a"] * 900) + b" = 1\n", "INVALID_TOML"),
    ],
)
def test_a_file_that_does_not_parse_is_left_alone(tool: Tool, file: Path, content: bytes, code: str) -> None:
    file.write_bytes(content)

    for call in (["set", "a", "1"], ["get", "a"], ["unset", "a"], ["list"], ["explain", "jobs"]):
        assert tool("config", *call).code == code

    assert file.read_bytes() == content


@pytest.mark.parametrize("kind", ["directory", "fifo", "huge"])
def test_what_is_no_regular_file_is_refused(tool: Tool, file: Path, kind: str) -> None:
    file.unlink()
    if kind == "directory":
        file.mkdir()
    elif kind == "fifo":
        os.mkfifo(file)
    else:
        with file.open("wb") as huge:
            huge.truncate(2**33)

    for call in (["set", "a", "1"], ["get", "a"]):
        assert tool("config", *call).code == "UNSAFE_PATH"


def test_any_program_can_edit_a_file_without_our_command_line(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"

    with editing_toml(path) as file:
        file.text = set_value(file.text, ("colour", "sky"), "blue")
        file.write()
        with pytest.raises(LockTimeout), editing_toml(path, 0):
            pass

    assert path.read_text() == '[colour]\nsky = "blue"\n'
    assert file.version == read_toml(path).version
    with editing_toml(path, 0) as file:
        assert file.before.document == {"colour": {"sky": "blue"}}


def test_what_is_not_written_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("a = 1\n")

    with editing_toml(tmp_path / "settings.toml") as file:
        file.text = "a = 2\n"

    assert (tmp_path / "settings.toml").read_text() == "a = 1\n"


def test_after_the_deadline_nothing_is_changed(tmp_path: Path) -> None:
    now = [0.0]
    signals = Signals(clock=lambda: now[0])
    signals.limit(5)
    (tmp_path / "settings.toml").write_text("a = 1\n")

    with editing_toml(tmp_path / "settings.toml", 10, partial(Lock, signals=signals)) as file:
        file.text = "a = 2\n"
        now[0] = 5.0
        with pytest.raises(DeadlineExceeded):
            file.write()

    assert (tmp_path / "settings.toml").read_text() == "a = 1\n"


def test_a_text_that_would_be_too_large_to_be_read_again_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text("a = 1\n")

    with editing_toml(tmp_path / "settings.toml") as file:
        file.text = "#" * (4 << 20) + "\n"
        with pytest.raises(UnsafePath, match="larger"):
            file.write()

    assert read_toml(tmp_path / "settings.toml").document == {"a": 1}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_after_a_signal_under_the_lock_nothing_is_changed(tool: Tool, file: Path, number: int) -> None:
    before = file.read_text()

    def is_read(event: Event) -> bool:
        return event.name == "open" and event.path == str(file)

    with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
        stepped.run_until("fcntl.flock")
        stepped.run_until(is_read)
        stepped.signal(number)
        ended = stepped.finish()

    assert ended.status == -number
    assert Ran(ended.status, ended.stdout, ended.stderr).code == "INTERRUPTED"
    assert file.read_text() == before


def test_a_link_that_is_changed_during_the_wait_is_looked_at_again(tool: Tool, tmp_path: Path) -> None:
    link = tmp_path / "work" / "tool.toml"
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool.toml").write_text("[settings]\n")
    link.symlink_to(tmp_path / "old" / "tool.toml")

    with tool.stepped("config", "set", "a", "1", watch=tmp_path) as stepped:
        stepped.run_until(lambda event: event.name == "fcntl.flock" and event.path.endswith("tool.toml.lock"))
        link.unlink()
        link.symlink_to(tmp_path / "new" / "tool.toml")
        ended = stepped.finish()

    assert ended.status == 0
    assert (tmp_path / "old" / "tool.toml").read_text() == "[settings]\n"
    assert (tmp_path / "new" / "tool.toml").read_text() == "[settings]\na = 1\n"


def test_a_failed_flush_of_the_directory_says_that_the_change_is_there(tool: Tool, file: Path) -> None:
    with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
        stepped.run_until("os.rename")
        stepped.run_until("os.fsync")
        stepped.fail(28)
        ended = stepped.finish()

    ran = Ran(ended.status, ended.stdout, ended.stderr)
    assert (ran.status, ran.code, ran.error["context"]["path"]) == (1, "NOT_FLUSHED", str(file))
    assert "was saved" in ran.error["message"]
    assert "a" in keys(file)


@pytest.mark.parametrize("text", ["[[settings]]\n", "settings = 3\n"])
def test_settings_that_are_no_table_are_named(tool: Tool, file: Path, text: str) -> None:
    file.write_text(text)

    for call in (["set", "a", "1"], ["get", "a"], ["unset", "a"], ["list"]):
        ran = tool("config", *call)
        assert ran.code == "INVALID_TOML"
        assert "settings is not a table" in ran.error["message"]
    assert file.read_text() == text


def test_the_next_writer_removes_what_a_killed_one_left(tool: Tool, file: Path) -> None:
    with tool.stepped("config", "set", "a", "1", watch=file.parent) as stepped:
        stepped.run_until("os.rename")
        stepped.kill()
    assert [name for name in os.listdir(file.parent) if name.endswith(".tmp")]

    assert "recovered_from" in tool("config", "set", "b", "2").meta

    assert sorted(os.listdir(file.parent)) == [".tool", "tool.toml"]
