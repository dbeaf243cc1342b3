"""Counters, keys and queues that exist are offered behind TAB."""

from pathlib import Path

import pytest

from sampletool.kit.testing.tool import Tool


@pytest.mark.parametrize(
    "words", ["counter get bu", "counter add bu", "state set bu", "task claim bu", "task list bu"]
)
def test_names_in_the_store_are_offered(tool: Tool, workspace: Path, words: str) -> None:
    for call in (
        ["counter", "add", "builds"],
        ["state", "set", "builds", "1"],
        ["task", "add", "builds", "x"],
    ):
        assert tool(*call).status == 0

    ran = tool(_TOOL_COMPLETE="complete_bash", COMP_WORDS=f"tool {words}", COMP_CWORD="3")

    assert (ran.status, ran.stderr, ran.text) == (0, b"", "builds\n")


def test_a_store_that_cannot_be_reached_offers_nothing(tool: Tool, workspace: Path) -> None:
    url = "postgresql://nobody@127.0.0.1:1/none"

    ran = tool(
        _TOOL_COMPLETE="complete_bash",
        COMP_WORDS="tool counter get b",
        COMP_CWORD="3",
        TOOL_STORE=url,
    )

    assert (ran.status, ran.stderr, ran.text) == (0, b"", "\n")
