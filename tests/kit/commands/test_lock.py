"""tool lock list, tool lock release"""

from pathlib import Path

from sampletool.kit.testing.holding import holding
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
    assert tool("lock", "release", "nope").error["suggestion"] == "No lock is held here."
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock"):
        assert tool("lock", "release", "nope").error["suggestion"] == "Held now: tool.toml."
