"""tool session clean, as a user runs it; what it keeps and removes is tested in tests/safety/test_session.py."""

from tests.support.tool import Tool


def test_where_nothing_is_removed_the_limit_is_told(tool: Tool) -> None:
    text = tool("session", "clean", "--format", "text", TOOL_SESSION_TTL="36h").text

    assert text == "Nothing has been unused for 1.5d (session_ttl).\n"
    assert tool("session", "clean").data["unused_for"] == "7d"
