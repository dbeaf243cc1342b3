"""A session's directory: private, shared by its calls, and never removed under anybody."""

import json
import os
from pathlib import Path

import pytest

from sampletool.kit.contract.file_errors import FileNotFound
from sampletool.kit.places import session_root
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.lock_record import describe_me
from sampletool.kit.safety.session import list_sessions, opened, remove, sweep_trash
from sampletool.kit.stepping.tracer import SteppedProcess
from sampletool.kit.testing.forked import fork_server
from sampletool.kit.testing.tool import Tool


def make_lock(path: Path, name: str) -> Lock:
    return Lock(path, name, describe_me("s", "test"))


def test_two_calls_use_one_session_at_once_and_both_are_seen() -> None:
    root = session_root()
    with opened(root, "s", make_lock, 1) as one, opened(root, "s", make_lock, 1) as two:
        assert one == two == root / "s"
        assert one.stat().st_mode & 0o777 == 0o700
        assert list_sessions(root)[0].in_use_by == [os.getpid(), os.getpid()]

    assert list_sessions(root)[0].in_use_by == []


def test_what_is_in_use_is_not_removed() -> None:
    root = session_root()
    with opened(root, "s", make_lock, 1) as directory:
        assert not remove(directory, make_lock)
        assert directory.exists()

    assert remove(directory, make_lock)
    assert os.listdir(root) == []


def test_a_session_that_was_removed_is_made_anew() -> None:
    root = session_root()
    with opened(root, "s", make_lock, 1) as directory:
        (directory / "result").touch()
    remove(directory, make_lock)

    with opened(root, "s", make_lock, 1) as again:
        assert not (again / "result").exists()


def test_the_one_that_was_used_last_comes_first() -> None:
    root = session_root()
    for name, age in (("old", 1000), ("new", 10)):
        with opened(root, name, make_lock, 1) as directory:
            pass
        now = directory.stat().st_mtime
        os.utime(directory, (now - age, now - age))

    assert [session.session_id for session in list_sessions(root)] == ["new", "old"]


def test_what_an_interrupted_removal_left_is_swept() -> None:
    root = session_root()
    with opened(root, "s", make_lock, 1) as directory:
        pass
    directory.rename(root / ".removed-abc")

    sweep_trash(root)

    assert os.listdir(root) == []


def test_listing_and_cleaning_by_hand(tool: Tool) -> None:
    assert tool("session", "list").data == {"sessions": []}
    nothing = {"effect": "unchanged", "removed": [], "in_use": [], "unused_for": "7d"}
    assert tool("session", "clean").data == nothing
    text = tool("session", "clean", "--format", "text", TOOL_SESSION_TTL="36h").text
    assert text == "Nothing has been unused for 1.5d (session_ttl).\n"
    root = session_root()
    with opened(root, "mine", make_lock, 1):
        ran = tool("session", "list")
        assert ran.data["sessions"][0]["session_id"] == "mine"
        assert ran.data["sessions"][0]["in_use_by"] == [os.getpid()]
        assert tool("session", "clean", TOOL_SESSION_TTL="0").data["in_use"] == ["mine"]

    forecast = tool("session", "clean", "--dry-run", TOOL_SESSION_TTL="0")
    assert (forecast.data["removed"], forecast.meta["dry_run"]) == (["mine"], True)
    assert tool("session", "clean").data["removed"] == []
    assert tool("session", "clean", TOOL_SESSION_TTL="auto").data["removed"] == []
    assert tool("session", "clean", TOOL_SESSION_TTL="0").data["removed"] == ["mine"]
    assert os.listdir(root) == []


def test_a_planted_link_in_place_of_the_sessions_is_refused(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "elsewhere" / "victim").mkdir(parents=True)
    session_root().symlink_to(tmp_path / "elsewhere")

    assert tool("session", "clean", TOOL_SESSION_TTL="0").code == "UNSAFE_DIRECTORY"
    assert (tmp_path / "elsewhere" / "victim").exists()


def test_a_session_is_renamed_away_before_anything_of_it_is_deleted(tool: Tool) -> None:
    """Naive: a call that uses the same id at that moment gets a directory that is half gone."""
    root = session_root()
    with opened(root, "s", make_lock, 1) as directory:
        (directory / "result").touch()
    tool.environ["TOOL_SESSION_TTL"] = "0"
    with tool.stepped("session", "clean", watch=root) as stepped:
        stepped.run_until("os.rmdir")

        assert not directory.exists()
        assert stepped.finish().status == 0


def test_a_session_that_is_used_while_it_is_looked_at_keeps_what_was_just_made(tool: Tool) -> None:
    """Naive: who was stopped after looking at the age removes a result of a moment ago."""
    root = session_root()
    with opened(root, "s", make_lock, 1) as directory:
        pass
    os.utime(directory, (0, 0))
    with tool.stepped("session", "clean", watch=root) as stepped:
        stepped.run_until(lambda event: event.name == "open" and event.path.endswith(".lock.gate"))
        with opened(root, "s", make_lock, 1):
            (directory / "result").touch()

        answer = json.loads(stepped.finish().stdout)

    assert (directory / "result").exists()
    assert answer["data"]["removed"] == []


_OPEN = """
import os, sys
from pathlib import Path
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.session import opened
with opened(Path(sys.argv[1]), "s", Lock, 60) as directory:
    assert directory.is_dir()
"""


def test_a_session_that_is_removed_while_a_call_opens_it_is_made_anew(tmp_path: Path) -> None:
    root, program = session_root(), tmp_path / "open.py"
    program.write_text(_OPEN)
    with SteppedProcess([str(program), str(root)], watch=root, fork_server=fork_server()) as stepped:
        stepped.run_until(lambda event: event.name == "fcntl.flock" and event.path.endswith(".lock"))

        assert remove(root / "s", make_lock)

        ended = stepped.finish()
    assert ended.status == 0, ended.stderr
    assert (root / "s").is_dir()


def test_a_session_that_is_removed_again_and_again_is_not_used_without_its_lock() -> None:
    def gone(path: Path, name: str) -> Lock:
        raise FileNotFound(str(path))

    with pytest.raises(FileNotFound), opened(session_root(), "s", gone, 1):
        pytest.fail("nobody keeps it from being removed")


def test_a_session_is_used_from_its_first_moment_to_its_last() -> None:
    root = session_root()
    with opened(root, "s", make_lock, 1) as directory:
        os.utime(directory, (0, 0))
    assert list_sessions(root)[0].last_used_at > "2026"

    os.utime(directory, (0, 0))
    with opened(root, "s", make_lock, 1):
        assert list_sessions(root)[0].last_used_at > "2026"


def test_a_link_among_the_sessions_is_neither_listed_nor_removed(tool: Tool, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    with opened(session_root(), "s", make_lock, 1):
        (session_root() / "linked").symlink_to(victim)

    assert [session.session_id for session in list_sessions(session_root())] == ["s"]
    assert tool("session", "clean", TOOL_SESSION_TTL="0").data["removed"] == ["s"]
    assert (session_root() / "linked").is_symlink()
    assert os.listdir(victim) == []
