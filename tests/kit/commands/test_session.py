"""`tool session list` and `tool session clean`. See also tests/kit/safety/test_session.py."""

import os

from sampletool.kit.commands.session.clean import Cleaned
from sampletool.kit.places import session_root
from sampletool.kit.testing.tool import Tool


def _make_old_sessions(count: int) -> None:
    root = session_root()
    root.mkdir(mode=0o700)
    for number in range(count):
        directory = root / f"s{number:03}"
        directory.mkdir(mode=0o700)
        (directory / ".lock").touch(mode=0o600)
        os.utime(directory, (number, number))


def test_a_clean_names_100_sessions_and_counts_all(tool: Tool) -> None:
    _make_old_sessions(102)

    forecast = tool("session", "clean", "--dry-run").data
    cleaned = tool("session", "clean").data

    assert forecast == cleaned
    assert (len(cleaned["removed"]), cleaned["removed_count"]) == (100, 102)
    assert os.listdir(session_root()) == []


def test_a_list_has_100_sessions_and_a_cursor_for_the_others(tool: Tool) -> None:
    _make_old_sessions(102)

    first = tool("session", "list")
    rest = tool("session", "list", "--after", first.meta["next_cursor"])

    assert len(first.data["sessions"]) == 100
    assert [session["session_id"] for session in rest.data["sessions"]] == ["s001", "s000"]
    assert "next_cursor" not in rest.meta


def test_the_text_of_a_clean_has_a_line_for_each_session_that_is_named() -> None:
    cleaned = Cleaned(
        effect="deleted",
        removed=["a"],
        removed_count=101,
        in_use=["b"],
        in_use_count=1,
        unused_for="7d",
    )

    assert cleaned.lines() == ["a: removed", "1 more: removed", "b: kept, in use"]


def test_without_an_old_session_the_text_says_what_counts_as_old(tool: Tool) -> None:
    text = tool("session", "clean", "--format", "text").text

    assert text == "No session has been unused for 7d (session_ttl).\n"
