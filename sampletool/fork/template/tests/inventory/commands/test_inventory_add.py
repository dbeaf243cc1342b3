"""tool inventory add"""

import tomllib
from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool


@pytest.mark.usefixtures("workspace")
def test_pieces_are_added_up(tool: Tool) -> None:
    tool("inventory", "add", "screw", "20")

    added = tool("inventory", "add", "screw").data

    assert added == {"effect": "updated", "item": "screw", "pieces": 21}


def test_concurrent_additions_are_all_counted(tool: Tool, workspace: Path) -> None:
    tool.together([["inventory", "add", "screw", "2"]] * 8)

    assert tomllib.loads((workspace / "in_stock.toml").read_text()) == {"screw": 16}


def test_a_dry_run_changes_nothing(tool: Tool, workspace: Path) -> None:
    added = tool("inventory", "add", "screw", "--dry-run").data

    assert added == {"effect": "created", "item": "screw", "pieces": 1}
    assert not (workspace / "in_stock.toml").exists()
