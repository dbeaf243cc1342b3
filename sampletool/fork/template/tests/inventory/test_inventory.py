"""tool inventory add, list, remove"""

import tomllib
from pathlib import Path

from sampletool.kit.testing.tool import Tool


def test_many_at_once_lose_nothing(tool: Tool, workspace: Path) -> None:
    tool.together([["inventory", "add", "screw", "2"]] * 8)

    assert tomllib.loads((workspace / "in_stock.toml").read_text()) == {"screw": 16}


def test_what_is_added_can_be_removed(tool: Tool, workspace: Path) -> None:
    assert tool("inventory", "add", "screw", "7").data == {"effect": "created", "item": "screw", "pieces": 7}
    assert tool("inventory", "remove", "screw", "3").data == {"effect": "updated", "item": "screw", "pieces": 4}


def test_what_is_not_there_cannot_be_removed(tool: Tool, workspace: Path) -> None:
    ran = tool("inventory", "remove", "screw")

    assert (ran.status, ran.code) == (6, "TOO_FEW")
    assert ran.error["context"] == {"item": "screw", "there": 0, "wanted": 1}


def test_a_forecast_changes_nothing(tool: Tool, workspace: Path) -> None:
    assert tool("inventory", "add", "screw", "--dry-run").data["pieces"] == 1
    assert not (workspace / "in_stock.toml").exists()


def test_few_is_what_the_setting_says(tool: Tool, workspace: Path) -> None:
    tool("inventory", "add", "screw", "7")
    assert tool("inventory", "list").data == {"items": [{"item": "screw", "pieces": 7, "is_low": False}]}

    tool("config", "set", "low_stock", "8")

    assert tool("inventory", "list").data == {"items": [{"item": "screw", "pieces": 7, "is_low": True}]}
