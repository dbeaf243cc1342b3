"""The id of a session becomes the name of a directory, so it is checked wherever it comes from."""

import pytest

from sampletool.kit.contract.errors import InvalidValues
from sampletool.kit.session_id import check_session_id
from sampletool.kit.testing.tool import Tool


@pytest.mark.parametrize("session_id", ["a", "A-1.b_c", "0" * 64])
def test_ordinary_ids_are_taken(session_id: str) -> None:
    assert check_session_id(session_id, "--session-id") == session_id


@pytest.mark.parametrize(
    "session_id", ["", ".", "..", "a/b", "/a", "-a", "a b", "a\n", "\na", "a" * 65, "a..b", ".hidden", "ü", "a\0", "~"]
)
def test_an_id_that_could_leave_its_place_is_refused_with_its_source(session_id: str) -> None:
    with pytest.raises(InvalidValues, match="TOOL_SESSION_ID"):
        check_session_id(session_id, "TOOL_SESSION_ID")


def test_an_id_is_checked_wherever_it_comes_from(tool: Tool) -> None:
    for ran in (tool("config", "list", "--session-id", "../x"), tool("config", "list", TOOL_SESSION_ID="../x")):
        assert ran.text.startswith('{"ok":false')
        assert (ran.code, ran.error["errors"][0]["value"]) == ("VALIDATION_ERROR", "../x")
