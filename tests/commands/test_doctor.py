"""tool doctor"""

import os
from pathlib import Path

from tests.support.tool import Tool


def test_a_healthy_machine_is_told_so_and_nothing_stays(tool: Tool, workspace: Path, home: Path) -> None:
    before = {*workspace.rglob("*"), *home.rglob("*")}

    data = tool("doctor").data

    assert data["healthy"] is True
    assert all(probe["ok"] for probe in data["probes"])
    assert {"python", "system", "typer", "filelock"} <= data["versions"].keys()
    assert {*workspace.rglob("*"), *home.rglob("*")} == before


def test_what_is_wrong_is_named_and_the_status_says_so(tool: Tool) -> None:
    planted = Path(tool.environ["TMPDIR"]) / f"tool-{os.geteuid()}"
    planted.symlink_to("/")

    assert tool("doctor").code == "UNSAFE_DIRECTORY"
