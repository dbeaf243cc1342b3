"""sampletool/kit/testing/tool.py: the tool runs as for a user, and a wrong response is noticed."""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.contract.command_spec import CommandSpec
from sampletool.kit.contract.errors import KeyNotFound, ToolError
from sampletool.kit.testing.tool import (
    Ran,
    Tool,
    check_envelope,
    declared_specs,
    describe_option,
    ended,
)

_SHOW = "import os, sys; print(sys.argv[1:], os.environ.get('PROBE'), os.getcwd())"


def test_a_command_gets_its_arguments_stdin_and_variables(tool: Tool, workspace: Path) -> None:
    set_from_stdin = tool("config", "set", "greeting", "-", stdin=b"hello")
    read = tool("config", "get", "jobs", TOOL_JOBS="3")

    assert set_from_stdin.data["effect"] == "created"
    assert (workspace / "tool.toml").read_text().endswith('greeting = "hello"\n')
    assert (read.data["value"], read.data["source"]) == (3, "environment")
    assert "TOOL_JOBS" not in tool.environ


def test_a_command_with_another_interpreter_environment_runs_too(tool: Tool) -> None:
    ran = tool("config", "path", LC_ALL="C")

    assert ran.data["scope"] == "user"


@pytest.mark.parametrize("kind", ["forked", "fresh"])
def test_a_process_is_started_in_the_directory_of_the_tool(tool: Tool, kind: str) -> None:
    if kind == "forked":
        process: Any = tool.start("a", program=["-c", _SHOW], environ={"PROBE": "x"})
    else:
        program = [sys.executable, "-c", _SHOW]
        process = tool.start_fresh("a", program=program, environ={"PROBE": "x"})

    ran = ended(process)

    assert ran.text == f"['a'] x {tool.cwd}\n"


def test_commands_that_start_together_all_end(tool: Tool, workspace: Path) -> None:
    results = tool.together([["config", "set", f"key{number}", "1"] for number in range(3)])

    assert [ran.data["effect"] for ran in results] == ["created"] * 3
    text = (workspace / "tool.toml").read_text()
    assert [f"key{number} = 1" in text for number in range(3)] == [True] * 3


def test_data_of_a_failure_and_the_error_of_a_success_are_noticed(tool: Tool) -> None:
    failed = tool("config", "get", "nope")
    succeeded = tool("config", "get", "jobs")

    assert (failed.code, failed.error["code"]) == ("KEY_NOT_FOUND", "KEY_NOT_FOUND")
    with pytest.raises(AssertionError):
        _ = failed.data
    with pytest.raises(AssertionError):
        _ = succeeded.error


@pytest.mark.parametrize(
    "change",
    [
        lambda line: line.removesuffix(b"\n"),
        lambda line: line + b"more",
        lambda line: line + line,
        lambda line: b"",
    ],
    ids=["no end", "more", "two lines", "nothing"],
)
def test_a_response_that_is_not_one_line_is_noticed(
    tool: Tool,
    change: Callable[[bytes], bytes],
) -> None:
    right = tool("config", "path")

    wrong = Ran(0, change(right.stdout), b"")

    with pytest.raises(AssertionError):
        _ = wrong.response


class KeyAway(KeyNotFound):
    """The key has no value yet."""

    retry_after_ms: int | None = 5


def _changed(response: dict[str, Any], path: str, value: object) -> dict[str, Any]:
    """Return a copy of a response with another value at this path."""
    changed: dict[str, Any] = json.loads(json.dumps(response))
    *parents, name = path.split(".")
    member = changed
    for parent in parents:
        member = member[parent]
    member[name] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("ok", True),
        ("meta.cwd", None),
        ("error.context", None),
        ("error.message", "It has no end"),
        ("error.retryable", True),
        ("error.retry_after_ms", 5),
        ("error.exit_code", 6),
    ],
)
def test_members_that_contradict_each_other_are_noticed(
    tool: Tool,
    path: str,
    value: object,
) -> None:
    response = tool("config", "get", "nope").response
    check_envelope(response)

    with pytest.raises(AssertionError):
        check_envelope(_changed(response, path, value))


def test_a_question_is_a_message_too(tool: Tool) -> None:
    response = tool("config", "get", "nope").response

    check_envelope(_changed(response, "error.message", "Is it set?"))


@pytest.mark.parametrize(
    ("exit_code", "is_right"),
    [(-signal.SIGTERM, True), (143, True), (-signal.SIGINT, False), (0, False)],
)
def test_a_signal_is_an_exit_code_in_the_response(
    tool: Tool,
    exit_code: int,
    is_right: bool,
) -> None:
    response = tool("config", "get", "nope").response
    response = _changed(response, "error.code", "INTERRUPTED")
    response = _changed(response, "error.exit_code", 143)
    response = _changed(response, "meta.exit_code", 143)
    line = json.dumps(response, separators=(",", ":"))
    program = f"import os, sys, time; print({line!r}, flush=True)\n"
    if exit_code < 0:
        program += f"os.kill(os.getpid(), {-exit_code}); time.sleep(45)"
    else:
        program += f"os._exit({exit_code})"

    problem = None
    try:
        ended(tool.start(program=["-c", program]))
    except AssertionError as error:
        problem = str(error)

    assert (problem is None) is is_right


def test_an_error_that_the_command_does_not_declare_is_noticed(
    tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(declared_specs(), "config.get", CommandSpec(effect="nothing"))

    with pytest.raises(AssertionError, match="does not declare"):
        tool("config", "get", "nope")


@pytest.mark.parametrize(("declared_error", "is_right"), [(KeyNotFound, False), (KeyAway, True)])
def test_a_retryable_error_must_be_retryable_in_the_manifest_too(
    tool: Tool,
    monkeypatch: pytest.MonkeyPatch,
    declared_error: type[ToolError],
    is_right: bool,
) -> None:
    spec = CommandSpec(effect="nothing", errors=(declared_error,))
    monkeypatch.setitem(declared_specs(), "config.get", spec)
    response = tool("config", "get", "nope").response
    response = _changed(response, "error.retryable", True)
    response = _changed(response, "error.retry_after_ms", 5)
    line = json.dumps(response, separators=(",", ":"))

    problem = None
    try:
        ended(tool.start(program=["-c", f"print({line!r}); raise SystemExit(5)"]))
    except AssertionError as error:
        problem = str(error)

    assert (problem is None) is is_right
    if problem is not None:
        assert "KEY_NOT_FOUND is retryable. Give its class a retry_after_ms" in problem


def test_output_that_is_no_response_is_not_checked(tool: Tool) -> None:
    ran = ended(tool.start(program=["-c", "print('text'); raise SystemExit(3)"]))

    assert (ran.status, ran.text) == (3, "text\n")


def test_the_spec_of_each_command_is_known_by_its_name_with_dots() -> None:
    specs = declared_specs()

    assert specs["config.set"].effect == "settings"
    assert specs["doctor"].effect == "nothing"


def test_an_option_is_described_by_its_flag(tool: Tool) -> None:
    option = describe_option(tool, "config list", "--limit")

    assert (option["name"], option["type"], option["flags"]) == ("limit", "integer", ["--limit"])


def test_ending_a_tool_ends_what_it_has_started(tmp_path: Path) -> None:
    tool = Tool(dict(os.environ), tmp_path)
    forked = tool.start(program=["-c", "import time; time.sleep(45)"])

    tool.end()

    assert forked.returncode == -signal.SIGKILL
