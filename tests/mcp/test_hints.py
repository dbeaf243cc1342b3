"""sampletool/mcp/hints.py: the texts of errors, in the words of the protocol."""

import pytest

from sampletool.mcp.hints import translate_error
from tests.mcp.test_arguments import IF_VERSION, IN_USER_FILE, parameter

PARAMETERS = [
    IF_VERSION,
    IN_USER_FILE,
    parameter("lock_timeout", flag="--lock-timeout"),
    parameter("key"),
]


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("pass --lock-timeout 2m.", 'pass lock_timeout: "2m".'),
        ("pass --lock-timeout 1.5h.", 'pass lock_timeout: "1.5h".'),
        ("pass --lock-timeout with a value", "pass lock_timeout with a value"),
        ("you passed --if-version 3", "you passed if_version: 3"),
        ("pass --if-version=3.", "pass if_version: 3."),
        ("Pass `--global`.", "Pass `global: true`."),
        ("Run `tool x --global`.", "Run `tool x --global`."),
        ("--unknown stays", "--unknown stays"),
        ("a--global stays", "a--global stays"),
    ],
)
def test_an_option_becomes_the_argument_of_the_tool(text: str, translated: str) -> None:
    error = {"message": text, "suggestion": text, "errors": [{"param": "key", "message": text}]}

    assert translate_error(error, PARAMETERS) == {
        "message": translated,
        "suggestion": translated,
        "errors": [{"param": "key", "message": translated}],
    }


def test_the_other_facts_of_an_error_stay() -> None:
    error = {"message": "", "suggestion": "", "code": "X", "context": {"a": "--global"}}

    assert translate_error(error, PARAMETERS) == error
