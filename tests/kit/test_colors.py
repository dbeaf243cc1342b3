"""The output is in color only for a reader who wants it."""

import os
import pty
from collections.abc import Iterator

import pytest

from sampletool.kit.colors import wants_color
from sampletool.kit.testing.tool import Tool

_VARIABLES = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "TERM")


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def terminal() -> Iterator[int]:
    """A descriptor of a terminal."""
    controller, terminal = pty.openpty()
    yield terminal
    os.close(controller)
    os.close(terminal)


@pytest.fixture
def pipe() -> Iterator[int]:
    """A descriptor of a pipe."""
    reader, writer = os.pipe()
    yield writer
    os.close(reader)
    os.close(writer)


def test_a_terminal_has_colors_and_a_pipe_has_none(terminal: int, pipe: int) -> None:
    assert wants_color(terminal, None)
    assert wants_color(terminal, "auto")
    assert not wants_color(pipe, None)
    assert not wants_color(pipe, "auto")


def test_the_option_decides_before_every_variable(
    terminal: int, pipe: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert wants_color(pipe, "always")

    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert not wants_color(terminal, "never")


@pytest.mark.parametrize(
    ("name", "value", "in_terminal", "in_pipe"),
    [
        ("NO_COLOR", "1", False, False),
        ("NO_COLOR", "", True, False),
        ("FORCE_COLOR", "1", True, True),
        ("FORCE_COLOR", "0", False, False),
        ("FORCE_COLOR", "false", False, False),
        ("CLICOLOR_FORCE", "1", True, True),
        ("CLICOLOR_FORCE", "0", True, False),
        ("CLICOLOR", "0", False, False),
        ("CLICOLOR", "1", True, False),
        ("TERM", "dumb", False, False),
        ("TERM", "xterm", True, False),
    ],
)
def test_each_variable_has_its_usual_meaning(
    terminal: int,
    pipe: int,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: str,
    in_terminal: bool,
    in_pipe: bool,
) -> None:
    monkeypatch.setenv(name, value)

    assert wants_color(terminal, None) is in_terminal
    assert wants_color(pipe, None) is in_pipe


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}, False),
        ({"FORCE_COLOR": "0"}, {"CLICOLOR_FORCE": "1"}, False),
        ({"CLICOLOR_FORCE": "1"}, {"CLICOLOR": "0"}, True),
    ],
)
def test_of_two_variables_the_first_one_decides(
    pipe: int,
    monkeypatch: pytest.MonkeyPatch,
    first: dict[str, str],
    second: dict[str, str],
    expected: bool,
) -> None:
    for name, value in (first | second).items():
        monkeypatch.setenv(name, value)

    assert wants_color(pipe, None) is expected


def test_the_option_colors_the_errors_of_a_command(tool: Tool) -> None:
    colored = tool("config", "get", "nothing", "--format", "text", "--color", "always")
    plain = tool(
        "config", "get", "nothing", "--format", "text", "--color", "never", FORCE_COLOR="1"
    )

    assert colored.stderr.startswith(b"\x1b[31mError:")
    assert b"\x1b" not in plain.stderr
