"""tool state: what its commands promise and return."""

import pytest

from sampletool.kit.testing.tool import Tool
from tests.state.support.specs import wrong_promises


def test_each_command_about_values_promises_what_the_table_says() -> None:
    assert wrong_promises("state") == []


@pytest.mark.usefixtures("workspace")
def test_a_change_that_is_repeated_with_its_key_says_so(tool: Tool) -> None:
    tool("state", "set", "plan", "draft")
    unset = ("state", "unset", "plan", "--idempotency-key", "k")
    first = tool(*unset)
    tool("state", "set", "plan", "new")

    again = tool(*unset)

    assert first.data == {"key": "plan", "version": 1, "effect": "deleted"}
    assert again.data == first.data
    assert again.meta["replayed"] is True
    assert tool("state", "get", "plan").data["value"] == "new"
