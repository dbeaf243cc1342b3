"""tool lab explore"""

import json
from pathlib import Path

from sampletool.kit.testing.tool import Tool
from tests.lab.explorer.orders import orders


def test_an_explorer_is_written_into_the_session_and_its_path_is_the_answer(tool: Tool) -> None:
    data = tool("lab", "explore", "reused-pid", "--session-id", "mine").data

    path = Path(data["output"])
    assert (path.name, path.parent.name, data["effect"]) == ("reused-pid.html", "mine", "created")
    (written,) = json.loads(path.read_text().partition('id="data">')[2].partition("</script>")[0])[
        "scenarios"
    ]
    assert data["scenarios"] == [written["name"]] == ["reused-pid"]
    assert data["schedules"] == sum(len(list(orders(way))) for way in written["ways"].values())


def test_the_same_explorer_may_be_written_again_and_any_other_file_is_kept(tool: Tool) -> None:
    explore = ("lab", "explore", "reused-pid", "--output", "page.html")
    forecast = tool(*explore, "--dry-run").data["effect"]
    assert not (tool.cwd / "page.html").exists()
    effects = [forecast, tool(*explore).data["effect"], tool(*explore).data["effect"]]
    (tool.cwd / "page.html").write_text("mine")

    refused = tool(*explore)

    assert effects == ["created", "created", "unchanged"]
    assert refused.code == "OUTPUT_EXISTS"
    assert (tool.cwd / "page.html").read_text() == "mine"


def test_what_is_wrong_with_the_path_is_said_before_the_work(tool: Tool) -> None:
    (tool.cwd / "link.html").symlink_to("elsewhere")

    codes = [
        tool("lab", "explore", "--output", name).code
        for name in ("nosuch/page.html", ".", "link.html")
    ]

    assert codes == ["FILE_NOT_FOUND", "UNSAFE_PATH", "UNSAFE_PATH"]
    assert tool("lab", "explore", "lost-config-updat").code == "SCENARIO_NOT_FOUND"
    assert [path.name for path in tool.cwd.iterdir()] == ["link.html"]
