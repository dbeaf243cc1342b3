"""tool inventory list"""

from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool


@pytest.mark.usefixtures("workspace")
def test_the_setting_decides_what_is_scarce(tool: Tool) -> None:
    tool("inventory", "add", "screw", "7")
    assert tool("inventory", "list").data["items"][0]["is_scarce"] is False

    tool("config", "set", "scarce_below", "8")

    assert tool("inventory", "list").data["items"][0]["is_scarce"] is True


def test_a_value_that_is_not_a_number_is_named(tool: Tool, workspace: Path) -> None:
    (workspace / "in_stock.toml").write_text('screw = "many"\n')

    error = tool("inventory", "list").error

    assert error["code"] == "INVALID_TOML"
    assert "screw is not a whole number" in error["message"]
