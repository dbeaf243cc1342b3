"""sampletool/kit/completion.py: what a shell offers when TAB is pressed.

Most tests set the variables that the script of a shell sets. One test runs the shells that are
installed.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.kit import completion
from sampletool.kit.context import Context
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.safety.signals import Signals
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool

_SHELLS = ("bash", "zsh", "fish")


def _offered(tool: Tool, shell: str, command_line: str) -> list[str]:
    """Return the names that the shell offers for the last word of the command line."""
    index_of_last_word = command_line.count(" ")
    variables = {
        "bash": {"COMP_WORDS": command_line, "COMP_CWORD": str(index_of_last_word)},
        "zsh": {"_TYPER_COMPLETE_ARGS": command_line},
        "fish": {
            "_TYPER_COMPLETE_ARGS": command_line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        },
    }
    environ: dict[str, Any] = {"_TOOL_COMPLETE": f"complete_{shell}", **variables[shell]}
    ran = tool(**environ)
    assert (ran.status, ran.stderr) == (0, b"")
    lines = ran.text.splitlines()
    if shell == "zsh":
        return [line.split('"')[1] for line in lines if '"' in line]
    # fish gets the help text of a name after a tab.
    return [line.split("\t")[0] for line in lines]


# Names


@pytest.mark.parametrize("shell", _SHELLS)
@pytest.mark.parametrize(
    ("command_line", "name"),
    [
        ("tool con", "config"),
        ("tool config ge", "get"),
        ("tool help con", "config"),
        ("tool config get --rev", "--reveal"),
        ("tool config get level --lock-t", "--lock-timeout"),
        ("tool config list --format ", "jsonl"),
        ("tool config get lev", "level"),
        ("tool config unset level lock", "lock_timeout"),
        ("tool config set form", "format"),
        ("tool config set format js", "jsonl"),
        ("tool config set level=2 format=js", "format=jsonl"),
        (f"tool lock release {PROGRAM}", "tool.toml"),
        ("tool config list --session-id my", "my-session"),
    ],
)
@pytest.mark.usefixtures("workspace")
def test_the_names_that_fit_are_offered(
    tool: Tool,
    shell: str,
    command_line: str,
    name: str,
) -> None:
    tool("config", "set", "level", "3")
    sessions = Path(tool.environ["TMPDIR"]) / f"tool-{os.geteuid()}"
    sessions.mkdir(mode=0o700)
    (sessions / "my-session").mkdir(mode=0o700)

    assert name in _offered(tool, shell, command_line)


@pytest.mark.usefixtures("workspace")
def test_only_names_that_begin_as_the_typed_word_are_offered(tool: Tool) -> None:
    tool("config", "set", "level=1", "lever=2", "other=3")

    assert _offered(tool, "bash", "tool config get le") == ["level", "lever"]


@pytest.mark.usefixtures("workspace")
def test_the_values_of_a_choice_are_offered_where_bash_splits_the_word(tool: Tool) -> None:
    assert _offered(tool, "bash", "tool config set format = te") == ["text"]
    assert _offered(tool, "bash", "tool config set format =") == ["auto", "json", "jsonl", "text"]


@pytest.mark.usefixtures("workspace")
def test_the_names_are_those_of_the_directory_in_the_command_line(
    tool: Tool,
    tmp_path: Path,
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "tool.toml").write_text("[settings]\nelsewhere = 1\n")

    assert "elsewhere" in _offered(tool, "bash", f"tool config get -C {other} else")


_DANGEROUS_NAMES = """
[settings]
level = 1
"le$(touch x)" = 1
"le\\"); touch x; (\\"" = 1
"le touch" = 1
"""


@pytest.mark.parametrize("shell", _SHELLS)
def test_a_name_that_a_shell_would_run_is_not_offered(
    tool: Tool,
    workspace: Path,
    shell: str,
) -> None:
    (workspace / "tool.toml").write_text(_DANGEROUS_NAMES)

    assert _offered(tool, shell, "tool config get le") == ["level"]
    for name in _offered(tool, shell, "tool config get "):
        assert "touch" not in name


@pytest.mark.parametrize("char", "./@%+,=:-_")
def test_a_name_with_a_harmless_character_is_offered(char: str) -> None:
    assert completion._matching_names([f"a{char}b"], "a") == [f"a{char}b"]


@pytest.mark.parametrize(
    "name",
    ["a b", "a'b", 'a"b', "a$b", "a`b", "a;b", "a\nb", "-a", "a(b", "a*"],
)
def test_a_name_with_a_meaning_for_a_shell_is_not_offered(name: str) -> None:
    assert completion._matching_names([name], "") == []


# Completion disturbs nothing


@pytest.mark.parametrize(
    "command_line",
    [
        "tool config get lock",
        "tool lock release x",
        "tool nothing x",
        "tool config get -C nowhere x",
        'tool config get "',
        "",
    ],
)
def test_completion_creates_no_file_and_prints_no_error(
    tool: Tool,
    workspace: Path,
    home: Path,
    command_line: str,
) -> None:
    (workspace / "tool.toml").write_text("[broken")

    _offered(tool, "bash", command_line)

    assert [path.name for path in workspace.rglob("*")] == ["tool.toml"]
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_completion_does_not_wait_for_a_lock(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "level", "1")

    with holding(workspace / ".tool" / "locks" / "tool.toml.lock"):
        assert _offered(tool, "bash", "tool config get lev") == ["level"]


@pytest.fixture
def typer_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a stand-in for the context that Typer passes."""
    monkeypatch.chdir(tmp_path)
    return SimpleNamespace(obj=Context(Signals()))


def test_the_names_are_looked_up_as_in_a_dry_run_and_for_a_second_at_most(
    typer_context: Any,
) -> None:
    seen: list[tuple[bool, bool]] = []

    def names(context: Context) -> list[str]:
        before_the_deadline = context.signals.is_over()
        context.signals.wait(60)
        seen.append((context.dry_run, before_the_deadline))
        return ["level"] if context.signals.is_over() else []

    offered = completion.offering(names)(ctx=typer_context, incomplete="l")

    assert offered == ["level"]
    assert seen == [(True, False)]


def test_if_the_names_cannot_be_found_none_is_offered_and_everything_is_closed(
    typer_context: Any,
) -> None:
    closed: list[str] = []

    def names(context: Context) -> Iterator[str]:
        context.exit_stack.callback(closed.append, "store")
        yield "level"
        raise ConnectionResetError

    offered = completion.offering(names)(ctx=typer_context, incomplete="l")

    assert offered == []
    assert closed == ["store"]


def test_what_a_library_prints_on_stderr_does_not_disturb_the_shell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def main(**_options: object) -> None:
        sys.stderr.write("noise")

    exit_code = completion._print_names([], SimpleNamespace(main=main), Context(Signals()))

    assert exit_code == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("end", "exit_code"),
    [(SystemExit(3), 3), (SystemExit("words"), 0), (SystemExit(), 0), (ValueError(), 1)],
)
def test_the_exit_code_is_that_of_typer_and_a_bug_prints_nothing(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    end: BaseException,
    exit_code: int,
) -> None:
    def main(**_options: object) -> None:
        raise end

    monkeypatch.setenv("_TOOL_COMPLETE", "complete_bash")

    served = completion.serve([], SimpleNamespace(main=main), Context(Signals()))

    assert served == exit_code
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(("returned", "exit_code"), [(None, 0), (4, 4)])
def test_the_exit_code_of_a_script_is_that_of_typer(
    monkeypatch: pytest.MonkeyPatch,
    returned: int | None,
    exit_code: int,
) -> None:
    calls: list[list[str]] = []

    def main(args: list[str], **_options: object) -> int | None:
        calls.append(args)
        return returned

    command = SimpleNamespace(main=main)
    monkeypatch.setattr(completion, "_command_with_completion_options", lambda: command)
    # Restored after the test, because the function sets it.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "")

    served = completion.serve(["--show-completion=zsh"], None, Context(Signals()))

    assert served == exit_code
    assert calls == [["--show-completion", "zsh"]]


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--show-completion"], True),
        (["--install-completion=fish"], True),
        (["config", "--show-completion"], False),
        (["--show"], False),
        ([], False),
    ],
)
def test_only_the_first_argument_can_ask_for_a_script(args: list[str], expected: bool) -> None:
    assert completion.is_asked(args) is expected


# Scripts


_LINES_OF_SCRIPTS = {
    "bash": "complete -o default -F",
    "zsh": f"#compdef {PROGRAM}",
    "fish": f"complete --command {PROGRAM}",
}


@pytest.mark.parametrize("with_equals_sign", [True, False])
@pytest.mark.parametrize("shell", _SHELLS)
def test_the_script_is_for_the_shell_that_is_named(
    tool: Tool,
    shell: str,
    with_equals_sign: bool,
) -> None:
    if with_equals_sign:
        ran = tool(f"--show-completion={shell}")
    else:
        ran = tool("--show-completion", shell)

    assert (ran.status, ran.stderr) == (0, b"")
    shells = [name for name, line in _LINES_OF_SCRIPTS.items() if line in ran.text]
    assert shells == [shell]


def test_an_unknown_shell_is_an_error(tool: Tool) -> None:
    ran = tool("--show-completion", "nosuchshell")

    assert ran.status != 0


@pytest.mark.parametrize("shell", _SHELLS)
def test_the_script_can_be_installed(tool: Tool, home: Path, shell: str) -> None:
    ran = tool("--install-completion", shell)

    assert (ran.status, ran.stderr) == (0, b"")
    files = [path for path in home.rglob("*") if path.is_file()]
    assert any(f"complete_{shell}" in path.read_text() for path in files)


_FUNCTION = f"_{PROGRAM.replace('-', '_')}_completion"

_COMPLETE_IN_SHELL = {
    "bash": f"""
        eval "$({PROGRAM} --show-completion bash)"
        COMP_WORDS=({PROGRAM} config get lev) COMP_CWORD=3
        {_FUNCTION} {PROGRAM} lev get
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    "zsh": f"""
        compdef() {{ :; }}
        _arguments() {{ print -r -- "$1" | tr -cd 'a-z\\n'; }}
        eval "$({PROGRAM} --show-completion zsh)"
        words=({PROGRAM} config get lev) CURRENT=4
        {_FUNCTION}
    """,
    "fish": f"""
        {PROGRAM} --show-completion fish | source
        complete -C '{PROGRAM} config get lev'
    """,
}
"""For each shell, a program that prints the names that it offers for `tool config get lev`."""


@pytest.mark.parametrize("shell", [shell for shell in _SHELLS if shutil.which(shell)])
def test_an_installed_shell_completes_with_its_script(
    tool: Tool,
    workspace: Path,
    shell: str,
) -> None:
    (workspace / "tool.toml").write_text("[settings]\nlevel = 1\n")
    executable = workspace / "bin" / "tool"
    executable.parent.mkdir()
    executable.write_text(f'#!/bin/sh\nexec {sys.executable} -m {PACKAGE} "$@"\n')
    executable.chmod(0o755)

    completed = subprocess.run(
        [shell, "-c", _COMPLETE_IN_SHELL[shell]],
        cwd=workspace,
        env={**tool.environ, "PATH": f"{executable.parent}:{os.environ['PATH']}"},
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert (completed.returncode, completed.stdout, completed.stderr) == (0, b"level\n", b"")
