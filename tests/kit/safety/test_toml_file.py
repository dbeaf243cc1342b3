"""No change by anybody is lost, and what cannot be changed safely is left alone."""

import os
import stat
import tomllib
from pathlib import Path

import pytest

from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.scale import scale
from sampletool.kit.testing.tool import Tool

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
            SteppedProcess([str(script), str(file), "a", "1"], watch=file.parent) as a,
            SteppedProcess([str(script), str(file), "b", "2"], watch=file.parent) as b,
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
    [(b"[settings\n", "INVALID_TOML"), (b"\xff\xfe", "INVALID_TOML"), (b"a = " + b"[" * 5000, "INVALID_TOML")],
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
