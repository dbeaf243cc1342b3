"""tool lock list, tool lock release"""

import fcntl
from dataclasses import replace
from pathlib import Path

from sampletool.kit.safety.lock_record import describe_me, write_record
from sampletool.kit.testing.holding import Holding, holding
from sampletool.kit.testing.tool import Tool


def test_where_nothing_is_held_nothing_is_listed(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", "1")

    assert tool("lock", "list").data == {"locks": []}
    assert workspace


def test_a_held_lock_is_listed_with_its_holder(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", "1")
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock") as other:
        (held,) = tool("lock", "list").data["locks"]

    assert (held["lock"], held["shared"]) == ("tool.toml", False)
    assert held["holders"][0]["pid"] == other.pid
    assert held["holders"][0]["verified"] is True


def test_releasing_what_a_living_holder_has_is_refused(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", "1")
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock") as other:
        ran = tool("lock", "release", "tool.toml")

        assert (ran.status, ran.code) == (75, "LOCK_HELD")
        assert other.process.poll() is None


def test_releasing_what_nobody_holds_changes_nothing(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", "1")

    assert tool("lock", "release", "tool.toml").data == {"effect": "unchanged", "lock": "tool.toml", "ended": []}
    assert workspace


def test_a_lock_that_is_not_there_is_not_found(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", "1")

    ran = tool("lock", "release", "tool.toml.lock")

    assert (ran.status, ran.code) == (5, "LOCK_NOT_FOUND")
    assert "'tool.toml'" in ran.error["suggestion"]
    assert "`tool lock list`" in tool("lock", "release", "nope").error["suggestion"]
    assert workspace


def test_a_holder_that_cannot_be_seen_is_listed_and_keeps_its_lock(tool: Tool, workspace: Path) -> None:
    """A holder in another container, say: naive is that no lock is held, and that nothing was left behind."""
    tool("config", "set", "a", "1")
    path = workspace / ".tool" / "locks" / "tool.toml.lock"
    with path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_record(file.fileno(), replace(describe_me("s-1", "build"), pid_namespace="pid:[1]"))

        (held,) = tool("lock", "list").data["locks"]
        release = tool("lock", "release", "tool.toml")

    assert (held["lock"], held["holders"][0]["state"], held["holders"][0]["verified"]) == (
        "tool.toml",
        "unknown",
        False,
    )
    assert (release.status, release.code) == (75, "LOCK_HELD")


def test_a_dead_holder_s_child_is_forecast_and_then_ended(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", "1")
    holder = Holding(workspace / ".tool" / "locks" / "tool.toml.lock", child="sleep")
    child = holder.hear()["child"]
    holder.kill()

    forecast = tool("lock", "release", "tool.toml", "--dry-run").data
    released = tool("lock", "release", "tool.toml").data

    assert forecast == released == {"effect": "deleted", "lock": "tool.toml", "ended": [child]}
    assert tool("lock", "release", "tool.toml").data["effect"] == "unchanged"


def test_a_call_says_what_it_waited_for_and_after_whom_it_has_cleaned_up(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "a", "1")
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock") as other:
        assert tool("config", "set", "a", "2", "--lock-timeout", "0").error["context"]["timeout_ms"] == 0
        other.kill()

    after = tool("config", "set", "a", "3", "--verbose")

    assert after.meta.get("recovered_from", {}).get("pid") == other.pid
    assert after.meta["waited_ms"] >= 0
    assert b"lock tool.toml: got by pid" in after.stderr
