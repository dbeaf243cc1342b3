"""Every variable and every setting of git's that a fork keeps or switches off."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sampletool.fork.git import _KEPT, _NOWHERE, _UNASKED, git


@pytest.fixture
def called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """How git is called, with a variable of each kind that is kept, and with one that is not."""
    seen = SimpleNamespace(argv=[], env={})

    def run(argv: list[str], env: dict[str, str], **_options: Any) -> Any:
        seen.argv, seen.env = argv, env
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    for name in (*(f"{beginning}X" for beginning in _KEPT), "GIT_DIR", "GIT_INDEX_FILE"):
        monkeypatch.setenv(name, "given")
    git(tmp_path, "status", GIT_OWN="ours")
    return seen


def test_what_is_kept_and_switched_off_is_what_is_tested() -> None:
    assert _KEPT == ("GIT_AUTHOR_", "GIT_COMMITTER_", "GIT_CONFIG_", "GIT_EXEC_PATH")
    assert _NOWHERE == ("core.hooksPath", "core.excludesFile", "core.attributesFile")
    assert _UNASKED == (
        "core.hooksPath=/dev/null", "core.excludesFile=/dev/null", "core.attributesFile=/dev/null",
        "core.autocrlf=false", "commit.gpgSign=false",
    )  # fmt: skip


@pytest.mark.parametrize("beginning", _KEPT)
def test_each_variable_about_who_commits_and_how_git_runs_is_kept(called: SimpleNamespace, beginning: str) -> None:
    assert called.env[f"{beginning}X"] == "given"


@pytest.mark.parametrize("name", ["GIT_DIR", "GIT_INDEX_FILE"])
def test_each_variable_that_leads_to_another_repository_is_dropped(called: SimpleNamespace, name: str) -> None:
    assert name not in called.env
    assert called.env["GIT_OWN"] == "ours"


@pytest.mark.parametrize("setting", _UNASKED)
def test_each_setting_of_the_user_that_would_change_a_commit_is_switched_off(
    called: SimpleNamespace, setting: str
) -> None:
    position = called.argv.index(setting)

    assert called.argv[position - 1] == "-c"
