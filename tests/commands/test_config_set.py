"""tool config set"""

from pathlib import Path

from tests.support.tool import Tool


def test_one_key_is_set_and_everything_else_stays(tool: Tool, workspace: Path) -> None:
    before = (workspace / "tool.toml").read_text()

    ran = tool("config", "set", "key1", "val1")

    assert ran.data["effect"] == "created"
    assert (workspace / "tool.toml").read_text() == before + 'key1 = "val1"\n'
