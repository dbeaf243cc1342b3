"""`tool session list` and `tool session clean`. See also tests/kit/safety/test_session.py."""

import os

import pytest

from sampletool.kit.commands.session.clean import Cleaned, _is_old
from sampletool.kit.commands.session.list import Listing
from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.table import header_row
from sampletool.kit.places import session_root
from sampletool.kit.safety.clock import utc
from sampletool.kit.safety.session import SessionState
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool, declared_specs


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


def test_a_clean_removes_an_old_session_whose_creation_was_interrupted(tool: Tool) -> None:
    """Naive: the clean creates the missing lock file, so the session looks as if it was used."""
    directory = session_root() / "empty"
    directory.parent.mkdir(mode=0o700)
    directory.mkdir(mode=0o700)
    os.utime(directory, (0, 0))

    forecast = tool("session", "clean", "--dry-run").data
    cleaned = tool("session", "clean").data

    assert forecast == cleaned
    assert cleaned["removed"] == ["empty"]
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


def _session(last_used_at: str, *users: int) -> SessionState:
    return SessionState("s-1", last_used_at, list(users), "/t/s-1")


def test_a_session_is_old_if_it_was_last_used_before_the_period() -> None:
    now = 1_000_000.0
    oldest = utc(now - 60)

    ages = {seconds: _is_old(_session(utc(now - seconds)), oldest, now) for seconds in (61, 60, 59)}
    in_the_future = _is_old(_session(utc(now + 999)), oldest, now)

    assert ages == {61: True, 60: True, 59: False}
    assert in_the_future is False


def test_with_a_period_of_0_a_session_from_the_future_is_old_too() -> None:
    now = 1_000_000.0

    assert _is_old(_session(utc(now + 999)), utc(now), now)


def test_the_text_of_a_list_names_the_processes_that_use_a_session() -> None:
    sessions = [_session("2026-01-01T00:00:00Z", 7, 8), _session("2026-01-01T00:00:00Z")]

    assert Listing(sessions, None).lines() == [
        header_row("session", "last used", "used by", "path"),
        ("s-1", "2026-01-01T00:00:00Z", "7, 8", "/t/s-1"),
        ("s-1", "2026-01-01T00:00:00Z", "-", "/t/s-1"),
    ]


def _cleaned(removed_count: int, in_use_count: int) -> Cleaned:
    return Cleaned(
        effect="deleted",
        removed=["a"],
        removed_count=removed_count,
        in_use=["b"],
        in_use_count=in_use_count,
        unused_for="7d",
    )


def test_the_text_of_a_clean_counts_what_it_does_not_name() -> None:
    both = ["a: removed", "b: kept, in use"]

    assert _cleaned(100, 100).lines() == both
    assert _cleaned(102, 1).lines() == [both[0], "2 more: removed", both[1]]
    assert _cleaned(1, 103).lines() == [*both, "3 more: kept, in use"]
    assert _cleaned(0, 1).lines() == both


@pytest.mark.leaves_litter
def test_an_old_session_that_is_in_use_is_kept_and_named(tool: Tool) -> None:
    _make_old_sessions(2)
    in_use = session_root() / "s001"

    with holding(in_use / ".lock", "shared"):
        os.utime(in_use, (1, 1))
        forecast = tool("session", "clean", "--dry-run").data
        cleaned = tool("session", "clean").data
    again = tool("session", "clean", "--session-id", "mine").data

    assert forecast == cleaned
    assert (cleaned["effect"], cleaned["removed"]) == ("deleted", ["s000"])
    assert (cleaned["in_use"], cleaned["in_use_count"]) == (["s001"], 1)
    assert again["in_use"] == []


def test_without_an_old_session_nothing_is_changed(tool: Tool) -> None:
    assert tool("session", "clean").data["effect"] == "unchanged"
    assert Listing([], None).lines() == ["There is no session."]


# What the commands promise


@pytest.mark.parametrize(
    ("name", "promised"),
    [
        (
            "session.clean",
            CommandSpec(
                effect="sessions",
                locks=("session",),
                at_once=("session",),
                reads=("sessions", "settings"),
            ),
        ),
        ("session.list", CommandSpec(effect="nothing", reads=("sessions",))),
    ],
)
def test_each_command_promises_what_it_changes_and_needs(
    name: str,
    promised: CommandSpec,
) -> None:
    spec = declared_specs()[name]

    # The other members are texts for people.
    assert spec._replace(destroys="", before=(), examples=()) == promised
    assert spec.examples != ()
    assert (spec.destroys != "") == (spec.effect != "nothing")
