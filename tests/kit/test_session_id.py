"""sampletool/kit/session_id.py: a session id becomes the name of a directory, so it is checked."""

import pytest

from sampletool.kit.contract.errors import InvalidValues, Mistake
from sampletool.kit.contract.text import NOTHING
from sampletool.kit.session_id import check_session_id
from sampletool.kit.testing.tool import Tool

_RULE = "Use 1 to 64 letters, digits, '.', '_' or '-', starting with a letter or digit."


def _mistake_in(session_id: str, source: str) -> Mistake | None:
    """Return the mistake in an id, or None if it is accepted."""
    try:
        checked = check_session_id(session_id, source)
    except InvalidValues as error:
        (mistake,) = error.mistakes
        return mistake
    assert checked == session_id
    return None


@pytest.mark.parametrize("session_id", ["a", "A-1.b_c", "0" * 64])
def test_an_ordinary_id_is_accepted(session_id: str) -> None:
    assert _mistake_in(session_id, "--session-id") is None


@pytest.mark.parametrize(
    "session_id",
    [
        ".",
        "..",
        "a/b",
        "/a",
        "-a",
        "a b",
        "a\n",
        "\na",
        "a" * 65,
        "a..b",
        ".hidden",
        "\u00fc",
        "a\0",
        "~",
    ],
)
def test_an_id_that_could_lead_to_another_directory_is_refused(session_id: str) -> None:
    mistake = _mistake_in(session_id, "TOOL_SESSION_ID")

    assert mistake is not None
    assert (mistake.param, mistake.code) == ("TOOL_SESSION_ID", "INVALID_VALUE")
    assert mistake.value == session_id
    assert mistake.message.endswith(" is not a valid session ID (from TOOL_SESSION_ID)")
    assert str(mistake.suggestion).endswith(_RULE)


def test_an_empty_id_is_refused() -> None:
    mistake = _mistake_in("", "--session-id")

    assert mistake is not None
    assert mistake.message == "The session ID is empty (from --session-id)"
    assert mistake.suggestion == _RULE


@pytest.mark.parametrize("word", NOTHING)
def test_the_text_for_an_unset_variable_is_refused(word: str) -> None:
    mistake = _mistake_in(word, "--session-id")

    assert mistake is not None
    assert mistake.suggestion == f"Check the script that built this command line. {_RULE}"


def test_the_id_that_was_probably_meant_is_proposed() -> None:
    mistake = _mistake_in('"monday"', "--session-id")

    assert mistake is not None
    assert mistake.suggestion == f"Did you mean 'monday'? {_RULE}"


def test_an_id_is_checked_wherever_it_comes_from(tool: Tool) -> None:
    from_option = tool("config", "list", "--session-id", "../x")
    from_variable = tool("config", "list", TOOL_SESSION_ID="../x")

    for ran in (from_option, from_variable):
        assert ran.text.startswith('{"ok":false')
        assert (ran.code, ran.error["errors"][0]["value"]) == ("VALIDATION_ERROR", "../x")
