"""sampletool/fork/git.py: each variable and each setting of git that is kept or switched off."""

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sampletool.fork.errors import GitFailed
from sampletool.fork.git import git
from sampletool.kit.testing.failing import failure_of

_KEPT = ("GIT_AUTHOR_X", "GIT_COMMITTER_X", "GIT_CONFIG_X", "GIT_EXEC_PATH")
_DROPPED = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_QUARANTINE_PATH")
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.excludesFile=/dev/null",
    "core.attributesFile=/dev/null",
    "core.autocrlf=false",
    "commit.gpgSign=false",
    "user.useConfigOnly=true",
)


@dataclass(frozen=True)
class Completed:
    """What a program that exited successfully leaves."""

    returncode: int = 0
    stdout: str = ""
    stderr: str = ""


@dataclass
class Run:
    """How git was run."""

    command: list[str]
    environment: dict[str, str]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run git with all these variables, and return how it was run."""
    run = Run([], {})

    def note(command: list[str], env: dict[str, str], **_options: Any) -> Completed:
        run.command = command
        run.environment = env
        return Completed()

    monkeypatch.setattr(subprocess, "run", note)
    for name in (*_KEPT, *_DROPPED):
        monkeypatch.setenv(name, "given")
    git(tmp_path, "status")
    return run


@pytest.mark.parametrize("name", _KEPT)
def test_variables_about_the_user_and_the_settings_are_kept(run: Run, name: str) -> None:
    assert run.environment[name] == "given"


@pytest.mark.parametrize("name", _DROPPED)
def test_variables_that_lead_to_another_repository_are_dropped(run: Run, name: str) -> None:
    assert name not in run.environment


def test_other_variables_are_kept(run: Run) -> None:
    assert "PATH" in run.environment


@pytest.mark.parametrize("setting", _SETTINGS)
def test_settings_of_the_user_that_change_a_commit_are_switched_off(run: Run, setting: str) -> None:
    position = run.command.index(setting)

    assert run.command[position - 1] == "-c"


def test_there_is_no_other_setting(run: Run) -> None:
    assert run.command.count("-c") == len(_SETTINGS)


def test_a_failure_names_the_command_the_directory_and_the_reason(tmp_path: Path) -> None:
    error = failure_of(lambda: git(tmp_path, "log"))

    assert isinstance(error, GitFailed)
    assert error.message.startswith(f"git log failed in {tmp_path}: fatal: not a git repository")


def test_a_failure_without_a_message_has_the_exit_code(tmp_path: Path) -> None:
    error = failure_of(lambda: git(tmp_path, "config", "--get", "no.such-key"))

    assert isinstance(error, GitFailed)
    assert "exit code 1" in error.message
