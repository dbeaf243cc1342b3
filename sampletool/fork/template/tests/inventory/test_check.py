"""tool inventory check"""

from pathlib import Path

from sampletool.kit.safety.places import session_root
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool


def test_the_report_lies_in_the_session_and_is_never_replaced(tool: Tool, workspace: Path) -> None:
    tool("inventory", "add", "screw", "7")

    output = tool("inventory", "check", "--session-id", "monday").data["output"]

    assert Path(output).read_text() == ""
    assert tool("inventory", "check", "--session-id", "monday").code == "OUTPUT_EXISTS"


def test_too_few_is_a_failed_check_with_a_report(tool: Tool, workspace: Path) -> None:
    tool("inventory", "add", "screw", "2")

    ran = tool("inventory", "check")

    assert (ran.code, ran.error["context"]["failed"]) == ("CHECKS_FAILED", ["screw"])
    assert Path(ran.answer["data"]["output"]).read_text() == "screw\n"


def test_one_checks_at_a_time(tool: Tool, workspace: Path) -> None:
    tool("inventory", "check", "--session-id", "first")

    with holding(workspace / ".tool" / "locks" / "check.lock") as other:
        error = tool("inventory", "check").error

    assert (error["code"], error["context"]["holder"]["pid"]) == ("LOCK_HELD", other.pid)


def test_a_forecast_fails_where_the_call_would_and_makes_nothing(tool: Tool, workspace: Path) -> None:
    tool("inventory", "add", "big screw", "2")
    forecast = ["inventory", "check", "--session-id", "monday", "--dry-run"]
    assert tool(*forecast).error["context"]["failed"] == ["big screw"]
    assert not (session_root() / "monday").exists()

    assert tool("inventory", "check", "--session-id", "monday").error["context"]["failed"] == ["big screw"]

    assert tool(*forecast).code == "OUTPUT_EXISTS"
    (workspace / "tool.toml").unlink()
    assert tool(*forecast).code == "NO_WORKSPACE"


def test_what_is_no_number_is_named(tool: Tool, workspace: Path) -> None:
    (workspace / "in_stock.toml").write_text('screw = "many"\n')

    for call in (["add", "screw"], ["list"], ["check"]):
        assert "screw is not a whole number" in tool("inventory", *call).error["message"]
