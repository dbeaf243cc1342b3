"""tool inventory check"""

from pathlib import Path

from sampletool.kit.places import session_root, workspace_lock
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool


def test_too_few_is_a_failed_check_with_a_report_in_the_session(tool: Tool, workspace: Path) -> None:
    tool("inventory", "add", "big screw", "2")
    report = session_root() / "monday" / "check.txt"

    assert tool("inventory", "check", "--session-id", "monday", "--dry-run").code == "CHECKS_FAILED"
    assert not report.parent.exists()

    assert tool("inventory", "check", "--session-id", "monday").error["context"]["failed"] == ["big screw"]
    assert report.read_text() == "big screw\n"


def test_one_checks_at_a_time(tool: Tool, workspace: Path) -> None:
    with holding(workspace_lock(workspace, "check")) as other:
        error = tool("inventory", "check").error

    assert (error["code"], error["context"]["holder"]["pid"]) == ("LOCK_HELD", other.pid)


def test_what_is_no_number_is_named(tool: Tool, workspace: Path) -> None:
    (workspace / "in_stock.toml").write_text('screw = "many"\n')

    for call in (["add", "screw"], ["list"], ["check"]):
        assert "screw is not a whole number" in tool("inventory", *call).error["message"]
