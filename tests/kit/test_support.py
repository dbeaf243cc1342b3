"""sampletool/kit/testing: what tests use does what they rely on."""

import os
import signal
from pathlib import Path

import pytest

from sampletool.kit.testing.console import Terminal
from sampletool.kit.testing.tool import Ran, Tool, ended


def test_what_a_test_left_running_ends_with_it_and_keeps_no_pipe_open(tmp_path: Path) -> None:
    tool = Tool(dict(os.environ), tmp_path)
    left = tool.start("config", "set", "k", "-")
    assert left.stdin is not None
    left.stdin.write(b"never read")

    tool.end()

    assert left.returncode == -signal.SIGKILL
    assert all(pipe is not None and pipe.closed for pipe in (left.stdin, left.stdout, left.stderr))


def test_a_page_is_read_in_one_shell_that_stays_where_it_went(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)

    terminal.run("mkdir 'a b' && cd 'a b'; sleep 0 & cd . | cat")

    assert terminal.run("pwd; cd; exit 3") == "~/work/a b\n"
    assert terminal.run("pwd") == "~\n"


def test_a_relative_path_in_a_response_is_noticed(tool: Tool, workspace: Path) -> None:
    right = tool("config", "path")
    assert right.data["path"] == str(workspace / "tool.toml")

    wrong = Ran(0, right.stdout.replace(f"{workspace}/".encode(), b""), b"")

    with pytest.raises(AssertionError, match=r'must be absolute: .*"path":"tool.toml"'):
        _ = wrong.data


def test_a_response_that_does_not_fit_its_schema_is_noticed(tool: Tool) -> None:
    right = tool("config", "path")

    wrong = Ran(0, right.stdout.replace(b'"scope":"user"', b'"scope":"nowhere"'), b"")

    with pytest.raises(AssertionError, match=r"\$\.data\.scope: 'nowhere' is not one of"):
        _ = wrong.response


def test_an_exit_code_other_than_the_one_in_the_response_is_noticed(tool: Tool) -> None:
    response = tool("config", "path").text
    program = f"import sys; sys.stdout.write({response!r}); sys.exit(3)"

    process = tool.start(program=["-c", program])

    with pytest.raises(AssertionError, match="the exit code is 3, and 0 in the response"):
        ended(process)
