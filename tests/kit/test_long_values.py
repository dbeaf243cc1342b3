"""An error is short, even if it repeats an argument or a variable of 100 KB."""

import pytest

from sampletool.kit.contract.text import MAX_ECHOED_CHARACTERS
from sampletool.kit.testing.tool import Tool

_LONG = "x" * 100_000
_LONG_WORDS = "x y " * 25_000
_MAX_RESPONSE_BYTES = 4096

_COMMANDS = {
    "a key": ["config", "get", _LONG],
    "a part of a key": ["config", "get", f"a.{_LONG}"],
    "a key with a space": ["config", "get", f" {_LONG}"],
    "a key that is percent-encoded": ["config", "get", f"%20{_LONG}"],
    "a key of several words": ["config", "get", _LONG_WORDS],
    "a key to set": ["config", "set", f"%20{_LONG}", "1"],
    "a key without a value": ["config", "set", "a", "1", _LONG],
    "a key to remove": ["config", "unset", f"%20{_LONG}"],
    "a key to explain": ["config", "explain", _LONG],
    "a count": ["config", "set", "jobs", _LONG],
    "a count of several words": ["config", "set", "jobs", _LONG_WORDS],
    "a duration": ["config", "set", "lock_timeout", _LONG],
    "a switch": ["config", "set", "call_log", _LONG],
    "a format": ["config", "set", "format", _LONG],
    "--fields": ["config", "list", "--fields", _LONG],
    "a field of a field": ["config", "list", "--fields", f"settings.{_LONG}"],
    "--session-id": ["config", "list", "--session-id", _LONG],
    "--cwd": ["config", "list", "--cwd", _LONG],
    "--cwd with many parts": ["config", "list", "--cwd", "/x" * 50_000],
    "--format": ["config", "list", "--format", _LONG],
    "--format of several words": ["config", "list", "--format", _LONG_WORDS],
    "--lock-timeout": ["config", "list", "--lock-timeout", _LONG],
    "--timeout": ["config", "list", "--timeout", _LONG],
    "--limit": ["log", "--limit", _LONG],
    "--after": ["log", "--after", _LONG],
    "--since": ["log", "--since", _LONG],
    "an unknown command": [_LONG],
    "an unknown command of a group": ["config", _LONG],
    "an unknown command after help": ["help", _LONG],
    "an unknown command in the manifest": ["manifest", _LONG],
    "an unknown option": ["config", "list", f"--{_LONG}"],
    "an unknown short option": ["config", "list", f"-{_LONG}"],
    "an option that takes no value": ["config", "list", f"--quiet={_LONG}"],
    "an extra argument": ["config", "path", _LONG],
    "an extra argument of several words": ["config", "path", _LONG_WORDS],
    "a lock": ["lock", "release", _LONG],
}

_VARIABLES = [
    "TOOL_FORMAT",
    "TOOL_LOCK_TIMEOUT",
    "TOOL_TIMEOUT",
    "TOOL_SESSION_ID",
    "TOOL_CONFIG_DIR",
    "XDG_CONFIG_HOME",
]


@pytest.mark.parametrize("arguments", _COMMANDS.values(), ids=_COMMANDS.keys())
@pytest.mark.usefixtures("workspace")
def test_an_error_about_a_long_argument_is_short(tool: Tool, arguments: list[str]) -> None:
    ran = tool(*arguments)

    assert ran.status in (2, 5)
    assert ran.error["message"] != ""
    assert len(ran.stdout) + len(ran.stderr) < _MAX_RESPONSE_BYTES


@pytest.mark.usefixtures("workspace")
def test_an_error_about_very_many_mistakes_has_100_of_them(tool: Tool) -> None:
    ran = tool("config", "list", "--fields", "a," * 50_000)

    assert len(ran.error["errors"]) == 100
    assert "more mistakes." in ran.error["message"]


@pytest.mark.parametrize("value", [_LONG, f"/{_LONG}"], ids=["a word", "a path"])
@pytest.mark.parametrize("name", _VARIABLES)
def test_an_error_about_a_long_variable_is_short(tool: Tool, name: str, value: str) -> None:
    tool.environ[name] = value

    # This command reads all of these variables.
    ran = tool("config", "set", "--global", "a", "1", "--json")

    is_ignored = name == "XDG_CONFIG_HOME" and value == _LONG
    assert (ran.status == 0) == is_ignored
    assert len(ran.stdout) + len(ran.stderr) < _MAX_RESPONSE_BYTES


@pytest.mark.usefixtures("workspace")
def test_a_value_that_was_requested_by_its_name_is_printed_whole(tool: Tool) -> None:
    value = "y" * 10_000
    tool("config", "set", "a", value)

    assert tool("config", "get", "a").data["value"] == value


@pytest.mark.usefixtures("workspace")
def test_an_error_names_the_beginning_and_the_end_of_a_long_value(tool: Tool) -> None:
    key = f"beginning-{_LONG}-end"

    error = tool("config", "get", key).error

    echoed = error["context"]["key"]
    assert len(echoed) == MAX_ECHOED_CHARACTERS
    assert echoed.startswith("beginning-xxx")
    assert echoed.endswith("xxx-end")
    assert error["message"].startswith(f"{echoed} is not set in ")
