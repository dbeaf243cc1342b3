"""What a shell offers behind TAB: in a real shell where there is one, else by the variables that its script sets."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.testing.holding import holding
from sampletool.kit.testing.tool import Tool

_SHELLS = ("bash", "zsh", "fish")


def offered(tool: Tool, shell: str, words: str) -> list[str]:
    """What the script of a shell reads, and what of it the shell shows."""
    environ = {
        "bash": {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": words},
        "fish": {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
    }
    ran = tool(**environ[shell], _TOOL_COMPLETE=f"complete_{shell}")  # type: ignore[arg-type]
    assert (ran.status, ran.stderr) == (0, b"")
    if shell == "zsh":
        return [line.split('"')[1] for line in ran.text.splitlines() if '"' in line]
    return [line.split("\t")[0] for line in ran.text.splitlines()]


@pytest.mark.parametrize("shell", _SHELLS)
@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("tool con", "config"),
        ("tool config ge", "get"),
        ("tool help con", "config"),
        ("tool config get --rev", "--reveal"),
        ("tool config get level --lock-t", "--lock-timeout"),
        ("tool config list --format ", "jsonl"),
        ("tool config get lev", "level"),
        ("tool config unset level lock", "lock_timeout"),
        (f"tool lock release {PROGRAM}", "tool.toml"),
        ("tool config list --session-id my", "my-session"),
    ],
)
def test_what_may_be_written_here_is_offered(tool: Tool, workspace: Path, shell: str, words: str, name: str) -> None:
    tool("config", "set", "level", "3")
    sessions = Path(tool.environ["TMPDIR"]) / f"tool-{os.geteuid()}"
    for directory in (sessions, sessions / "my-session"):
        directory.mkdir(mode=0o700)

    assert name in offered(tool, shell, words)


def test_names_are_those_of_the_directory_that_is_given(tool: Tool, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "tool.toml").write_text("[settings]\nelsewhere = 1\n")

    assert "elsewhere" in offered(tool, "bash", f"tool config get -C {other} else")


def test_a_name_that_a_shell_would_run_is_not_offered(tool: Tool, workspace: Path) -> None:
    (workspace / "tool.toml").write_text('[settings]\nlevel = 1\n"le$(touch x)" = 1\n"le\\"); touch x; (\\"" = 1\n')

    for shell in _SHELLS:
        assert offered(tool, shell, "tool config get le") == ["level"]
        assert not [name for name in offered(tool, shell, "tool config get ") if "touch" in name]


def test_completion_creates_nothing_and_never_fails_loudly(tool: Tool, workspace: Path, home: Path) -> None:
    (workspace / "tool.toml").write_text("[broken")

    for words in (
        "tool config get lock",
        "tool lock release x",
        "tool nothing x",
        "tool config get -C nowhere x",
        'tool config get "',
        "",
    ):
        offered(tool, "bash", words)

    assert sorted(path.name for path in workspace.rglob("*")) == ["tool.toml"]
    assert [path for path in home.rglob("*") if path.is_file()] == []


def test_a_lock_that_is_held_does_not_keep_completion(tool: Tool, workspace: Path) -> None:
    tool("config", "set", "level", "1")
    with holding(workspace / ".tool" / "locks" / "tool.toml.lock"):
        assert offered(tool, "bash", "tool config get lev") == ["level"]


@pytest.mark.parametrize("shell", _SHELLS)
def test_the_script_is_that_of_the_shell_that_is_named(tool: Tool, shell: str) -> None:
    words = {"bash": "complete -o default -F", "zsh": f"#compdef {PROGRAM}", "fish": f"complete --command {PROGRAM}"}
    for option in (["--show-completion", shell], [f"--show-completion={shell}"]):
        ran = tool(*option)
        assert (ran.status, ran.stderr) == (0, b"")
        assert [word for word in words if words[word] in ran.text] == [shell]


@pytest.mark.parametrize("shell", _SHELLS)
def test_the_script_can_be_installed(tool: Tool, home: Path, shell: str) -> None:
    ran = tool("--install-completion", shell)

    assert (ran.status, ran.stderr) == (0, b"")
    assert any(f"complete_{shell}" in path.read_text() for path in home.rglob("*") if path.is_file())


_FUNCTION = f"_{PROGRAM.replace('-', '_')}_completion"
_SCRIPTS = {
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
    "fish": f"{PROGRAM} --show-completion fish | source; complete -C '{PROGRAM} config get lev'",
}


@pytest.mark.parametrize("shell", [shell for shell in _SHELLS if shutil.which(shell)])
def test_a_real_shell_completes_by_its_script(tool: Tool, workspace: Path, shell: str) -> None:
    """Of the shells that are installed: what the others read is tested above."""
    (workspace / "tool.toml").write_text("[settings]\nlevel = 1\n")
    binary = workspace / "bin" / "tool"
    binary.parent.mkdir()
    binary.write_text(f'#!/bin/sh\nexec {sys.executable} -m {PACKAGE} "$@"\n')
    binary.chmod(0o755)
    environ = {**tool.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}"}

    ran = subprocess.run(
        [shell, "-c", _SCRIPTS[shell]], cwd=workspace, env=environ, capture_output=True, timeout=60, check=False
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"level\n", b"")
