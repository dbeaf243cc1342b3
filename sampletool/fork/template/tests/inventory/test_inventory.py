"""tool inventory add, list, remove"""

import tomllib
from pathlib import Path

from sampletool.kit.testing.tool import Tool


def test_many_at_once_lose_nothing(tool: Tool, workspace: Path) -> None:
    tool.together([["inventory", "add", "screw", "2"]] * 8)

    assert tomllib.loads((workspace / "in_stock.toml").read_text()) == {"screw": 16}


def test_what_is_added_can_be_removed_and_no_more(tool: Tool, workspace: Path) -> None:
    assert tool("inventory", "add", "screw", "--dry-run").data["pieces"] == 1
    assert tool("inventory", "add", "screw", "7").data == {"effect": "created", "item": "screw", "pieces": 7}
    assert tool("inventory", "remove", "screw", "3").data == {"effect": "updated", "item": "screw", "pieces": 4}

    ran = tool("inventory", "remove", "screw", "5")

    assert (ran.status, ran.code) == (6, "NOT_ENOUGH")
    assert ran.error["context"] == {"item": "screw", "there": 4, "wanted": 5}


def test_few_is_what_the_setting_says(tool: Tool, workspace: Path) -> None:
    tool("inventory", "add", "screw", "7")

    tool("config", "set", "scarce_below", "8")

    assert tool("inventory", "list").data == {"items": [{"item": "screw", "pieces": 7, "is_low": True}]}


def test_a_file_that_cannot_grow_is_reported_and_stays_as_it_was(tool: Tool, workspace: Path) -> None:
    largest = "#" * (256 * 1024 - 1) + "\n"
    (workspace / "in_stock.toml").write_text(largest)

    ran = tool("inventory", "add", "screw")

    assert (ran.status, ran.code) == (2, "INVALID_TOML")
    assert "the file would become larger than 256 KiB" in ran.error["message"]
    assert (workspace / "in_stock.toml").read_text() == largest
