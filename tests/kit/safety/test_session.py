"""A session's directory: private, shared by its calls, and never removed under anybody."""

import os
from pathlib import Path

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.safety.lock import Lock
from sampletool.kit.safety.lock_record import describe_me
from sampletool.kit.safety.places import session_root
from sampletool.kit.safety.session import check_id, list_sessions, opened, remove, sweep_trash
from sampletool.kit.testing.tool import Tool


def make_lock(path: Path, name: str) -> Lock:
    return Lock(path, name, describe_me("s", "test"))


@pytest.mark.parametrize("session_id", ["a", "A-1.b_c", "0" * 64])
def test_ordinary_ids_are_taken(session_id: str) -> None:
    assert check_id(session_id, "--session-id") == session_id


@pytest.mark.parametrize(
    "session_id", ["", ".", "..", "a/b", "/a", "-a", "a b", "a\n", "\na", "a" * 65, "a..b", ".hidden", "ü", "a\0", "~"]
)
def test_an_id_that_could_leave_its_place_is_refused_with_its_source(session_id: str) -> None:
    with pytest.raises(InvalidValues, match="TOOL_SESSION_ID"):
        check_id(session_id, "TOOL_SESSION_ID")


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


def test_only_what_is_over_its_time_is_old() -> None:
    root = session_root()
    for name, age in (("old", 1000), ("new", 10)):
        with opened(root, name, make_lock, 1) as directory:
            pass
        now = directory.stat().st_mtime
        os.utime(directory, (now - age, now - age))

    assert [session.session_id for session in list_sessions(root) if session.unused_seconds > 500] == ["old"]


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
