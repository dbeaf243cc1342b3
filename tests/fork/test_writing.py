"""sampletool/fork/writing.py: a whole project or nothing, and no leftovers."""

import fcntl
import os
import re
from pathlib import Path

import pytest

from sampletool.fork.writing import remove_leftovers
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Tool
from sampletool.kit.testing.trees import tracked_files
from tests.fork.support import create_project, files_below, run_in

_ID = "0123456789abcdef"


def test_the_first_commit_has_all_files_whatever_the_user_ignores(tool: Tool, home: Path) -> None:
    (home / "ignored").write_text("tests/\n*.toml\n")
    (home / "home" / ".gitconfig").write_text(
        f"[core]\nexcludesFile = {home}/ignored\nhooksPath = {home}\n"
        "[commit]\ngpgSign = true\n[gpg]\nprogram = false\n"
        "[user]\nname = Bob\nemail = bob@example.org\n"
    )
    (home / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (home / "pre-commit").chmod(0o755)

    index = str(home / "index")
    created = tool("fork", "acme", GIT_DIR=str(ROOT / ".git"), GIT_INDEX_FILE=index).data

    project = tool.cwd / "acme"
    assert sorted(tracked_files(project)) == created["files"]
    assert created["is_committed"] is True
    assert run_in(project, "git", "log", "--format=%s, %an") == "Begin, Bob\n"
    assert run_in(project, "git", "status", "--porcelain") == ""


def test_without_an_identity_the_project_is_left_uncommitted(tool: Tool) -> None:
    created = tool("fork", "acme", GIT_CONFIG_SYSTEM="/dev/null").data

    project = tool.cwd / "acme"
    assert created["is_committed"] is False
    assert created["next"][1].startswith("git config --global user.name")
    assert created["next"][3] == "git commit --message=Begin"
    assert sorted(tracked_files(project)) == created["files"]
    status = run_in(project, "git", "status", "--porcelain").splitlines()
    assert {line[:2] for line in status} == {"A "}
    assert b"nobody" not in b"".join(path.read_bytes() for path in project.rglob("*.toml"))


def test_the_steps_that_it_prints_create_the_first_commit(tool: Tool, home: Path) -> None:
    created = tool("fork", "acme", GIT_CONFIG_SYSTEM="/dev/null").data

    commands = "\n".join(step for step in created["next"] if step.startswith(("cd ", "git ")))
    run_in(tool.cwd, "sh", "-e", "-c", commands)

    assert run_in(tool.cwd / "acme", "git", "log", "--format=%s, %an") == "Begin, YOUR NAME\n"


@pytest.mark.parametrize("variable", ["GIT_AUTHOR", "GIT_COMMITTER"])
def test_half_of_an_identity_is_not_enough(tool: Tool, variable: str) -> None:
    tool.environ[f"{variable}_NAME"] = "Bob"
    tool.environ[f"{variable}_EMAIL"] = "bob@example.org"

    created = tool("fork", "acme", GIT_CONFIG_SYSTEM="/dev/null").data

    assert created["is_committed"] is False


def test_variables_of_git_are_an_identity(tool: Tool) -> None:
    for role in ("AUTHOR", "COMMITTER"):
        tool.environ[f"GIT_{role}_NAME"] = "Bob"
        tool.environ[f"GIT_{role}_EMAIL"] = "bob@example.org"

    created = tool("fork", "acme", GIT_CONFIG_SYSTEM="/dev/null").data

    assert created["is_committed"] is True
    assert run_in(tool.cwd / "acme", "git", "log", "--format=%an %cn") == "Bob Bob\n"


def test_in_a_hook_of_git_the_project_has_all_objects(tool: Tool) -> None:
    other = str(create_project(tool, name="other") / ".git" / "objects")

    in_hook = tool(
        "fork",
        "acme",
        GIT_QUARANTINE_PATH=other,
        GIT_ALTERNATE_OBJECT_DIRECTORIES=other,
    )

    assert in_hook.status == 0
    run_in(tool.cwd / "acme", "git", "fsck", "--strict")


def test_filters_of_the_user_do_not_change_the_files(tool: Tool, home: Path) -> None:
    (home / "attributes").write_text("* filter=none\n")
    (home / "home" / ".gitconfig").write_text(
        f"[core]\nautocrlf = true\nsafecrlf = true\nattributesFile = {home}/attributes\n"
        '[filter "none"]\nclean = false\nrequired = true\n'
    )

    assert tool("fork", "acme").status == 0


@pytest.mark.parametrize("kind", ["file", "full directory", "link to a full directory"])
def test_what_is_at_the_path_is_not_changed(tool: Tool, kind: str) -> None:
    place = tool.cwd / "acme"
    if kind == "file":
        place.write_text("mine")
    elif kind == "full directory":
        place.mkdir()
        (place / "mine").touch()
    else:
        (tool.cwd / "elsewhere").mkdir()
        (tool.cwd / "elsewhere" / "mine").touch()
        place.symlink_to("elsewhere")
    before = sorted(tool.cwd.rglob("*"))

    real = tool("fork", "acme")
    dry = tool("fork", "acme", "--dry-run")

    assert real.code == dry.code == "OUTPUT_EXISTS"
    assert "Choose a new or an empty directory" in real.error["suggestion"]
    assert sorted(tool.cwd.rglob("*")) == before


def test_an_empty_directory_is_used(tool: Tool) -> None:
    created = tool("fork", "acme", "--to", ".").data

    assert created["next"][0] == f"cd {tool.cwd}"
    assert (tool.cwd / "acme" / "__init__.py").exists()


def test_the_parent_directory_has_to_exist(tool: Tool) -> None:
    error = tool("fork", "acme", "--to", "no/where").error

    assert error["code"] == "FILE_NOT_FOUND"
    assert error["context"]["path"] == str(tool.cwd / "no")
    assert list(tool.cwd.iterdir()) == []


def test_without_git_nothing_is_created(tool: Tool, home: Path) -> None:
    assert tool("fork", "acme", PATH=str(home)).code == "COMMAND_NOT_FOUND"
    assert list(tool.cwd.iterdir()) == []


def test_of_two_concurrent_commands_one_creates_the_project(tool: Tool) -> None:
    arguments = ("fork", "acme", "--command")
    place = tool.cwd / "acme"

    # Watch only the path that both want: to stop at every file next to it takes four times as long.
    with (
        tool.stepped(*arguments, "one", watch=place) as one,
        tool.stepped(*arguments, "two", watch=place) as two,
    ):
        for each in (one, two):
            each.run_until(lambda event: event.name == "os.rename" and event.path == str(place))
        first = one.finish()
        second = two.finish()

    assert (first.status, second.status) == (0, 6)
    assert b"OUTPUT_EXISTS" in second.stdout
    assert os.listdir(tool.cwd) == ["acme"]
    assert 'PROGRAM = "one"' in (place / "acme" / "__init__.py").read_text()


def test_after_kill_9_nothing_is_at_the_path_and_the_next_command_cleans_up(tool: Tool) -> None:
    place = tool.cwd / "acme"
    with tool.stepped("fork", "acme", watch=place) as stepped:
        stepped.run_until("os.rename")
        stepped.kill()
    (leftover,) = tool.cwd.iterdir()
    assert leftover.name.endswith(".fork")

    # Any project in the same directory will do.
    tool("fork", "other")

    assert os.listdir(tool.cwd) == ["other"]


def test_the_directory_of_a_running_command_is_not_a_leftover(tool: Tool) -> None:
    place = tool.cwd / "acme"
    with tool.stepped("fork", "acme", watch=place) as stepped:
        stepped.run_until("os.rename")

        remove_leftovers(tool.cwd)

        assert stepped.finish().status == 0
    assert files_below(place) != []


@pytest.mark.leaves_litter
def test_only_directories_with_the_name_of_a_leftover_and_without_an_owner_are_removed(
    tmp_path: Path,
) -> None:
    leftover = tmp_path / f".acme.{_ID}.fork"
    owned = tmp_path / f".owned.{_ID}.fork"
    others = [
        tmp_path / f"acme.{_ID}.fork",
        tmp_path / f".acme.{_ID}.forks",
        tmp_path / f".acme.{_ID[1:]}.fork",
        tmp_path / ".acme.fork",
    ]
    for directory in (leftover, owned, *others):
        directory.mkdir()
        (directory / "file").touch()
    (tmp_path / f".file.{_ID}.fork").touch()
    (tmp_path / f".link.{_ID}.fork").symlink_to(others[0])
    before = set(tmp_path.iterdir())

    descriptor = os.open(owned, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        remove_leftovers(tmp_path)
    finally:
        os.close(descriptor)

    assert before - set(tmp_path.iterdir()) == {leftover}
    assert (others[0] / "file").exists()


@pytest.mark.leaves_litter
def test_after_a_signal_the_command_removes_what_it_has_written(tool: Tool) -> None:
    with tool.stepped("fork", "acme", watch=tool.cwd) as stepped:
        stepped.run_until(lambda event: event.path.endswith("README.md"))
        stepped.signal(15)
        following = stepped.step()

    assert following is not None
    # It touches no further file, but its directory.
    assert re.search(r"\.acme\.[0-9a-f]{16}(\.fork)?$", following.path)


def test_a_signal_leaves_nothing(tool: Tool) -> None:
    with tool.stepped("fork", "acme", watch=tool.cwd) as stepped:
        stepped.run_until(lambda event: event.path.endswith("README.md"))
        stepped.signal(15)
        ended = stepped.finish()

    assert ended.status == -15
    assert list(tool.cwd.iterdir()) == []
