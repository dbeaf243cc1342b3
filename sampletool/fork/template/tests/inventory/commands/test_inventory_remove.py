"""tool inventory remove"""

import pytest

from sampletool.kit.testing.tool import Tool


@pytest.mark.usefixtures("workspace")
def test_removed_pieces_are_subtracted(tool: Tool) -> None:
    tool("inventory", "add", "screw", "7")

    removed = tool("inventory", "remove", "screw", "3").data

    assert removed == {"effect": "updated", "item": "screw", "pieces": 4}


@pytest.mark.usefixtures("workspace")
def test_more_than_there_is_cannot_be_removed(tool: Tool) -> None:
    tool("inventory", "add", "screw", "2")

    ran = tool("inventory", "remove", "screw", "3")

    assert (ran.status, ran.code) == (6, "NOT_ENOUGH")
    assert ran.error["context"] == {"item": "screw", "there": 2, "wanted": 3}
    assert tool("inventory", "list").data["items"][0]["pieces"] == 2
