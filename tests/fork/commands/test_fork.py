"""tool fork"""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from sampletool.kit.testing.tool import Ran, Tool
from sampletool.kit.testing.trees import commit, copy_tree, make_environment, tracked_files
from tests.fork.support import NAME_OF_ORIGINAL, create_project, files_below, run_in


def mistake_in(ran: Ran) -> dict[str, Any]:
    """Return the only mistake of a command that was refused."""
    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    (mistake,) = ran.error["errors"]
    assert isinstance(mistake, dict)
    return mistake


def test_the_program_has_its_own_name(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    project = create_project(tool, "--command", "stock", "--description", "Counts screws.")
    monkeypatch.delenv("PYTHONPATH")
    python = str(make_environment(project))
    monkeypatch.chdir(tool.cwd)

    # Each command is a process of another program, so the fork server cannot start it.
    for arguments in ("--help", "config --help", "help", "config get", "config set x", "manifest"):
        ran = subprocess.run(
            [python, "-m", "acme", *arguments.split()],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode != 1, ran.stdout + ran.stderr
        assert "stock" in ran.stdout
        assert list(NAME_OF_ORIGINAL.finditer(ran.stdout + ran.stderr)) == [], arguments
        if arguments == "--help":
            assert "Counts screws." in ran.stdout


def test_make_check_names_a_file_of_the_kit_that_was_edited(tool: Tool) -> None:
    project = create_project(tool)
    python = str(make_environment(project))
    run_in(project, python, "-m", "acme.kit.checksums")

    (project / "acme" / "kit" / "app.py").write_text("edited")

    edited = subprocess.run(
        [python, "-m", "acme.kit.checksums"],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert edited.returncode == 1
    assert "app.py" in edited.stderr


def test_only_files_that_git_tracks_are_copied(tool: Tool, tmp_path: Path) -> None:
    checkout = copy_tree(ROOT, tmp_path / "checkout")
    commit(checkout)
    untracked = (f"{PACKAGE}/kit/mine.py", f"{PACKAGE}/state/mine.py", "tests/state/notes.txt")
    for path in untracked:
        (checkout / path).write_text("mine")

    # The fork server has loaded this checkout, so another one needs a process of its own.
    created = tool("fork", "acme", "--with", "state", PYTHONPATH=str(checkout)).data

    names = {path.rpartition("/")[2] for path in created["files"]}
    assert not names & {"mine.py", "notes.txt"}


def test_what_is_neither_a_checkout_nor_a_wheel_is_refused(tool: Tool, tmp_path: Path) -> None:
    copy = copy_tree(ROOT / PACKAGE, tmp_path / "copy" / PACKAGE)

    ran = tool("fork", "acme", PYTHONPATH=str(copy.parent))

    assert (ran.status, ran.code) == (4, "GIT_FAILED")
    assert list(tool.cwd.iterdir()) == []


def test_a_dry_run_lists_the_same_files_and_creates_none(tool: Tool) -> None:
    forecast = tool("fork", "acme", "--dry-run").data
    assert list(tool.cwd.iterdir()) == []

    created = tool("fork", "acme").data

    assert created["files"] == forecast["files"]
    assert created["files"] == tracked_files(tool.cwd / "acme")


def test_the_response_has_the_next_steps_and_the_placeholders(tool: Tool) -> None:
    created = tool("fork", "acme", "--to", "a b", "--ci", "github", "--dry-run").data

    assert created["next"] == [
        f"cd '{tool.cwd}/a b'",
        "make check test",
        ".venv/bin/acme --help",
    ]
    assert created["to_do"] == [
        "Describe the tool in acme/__init__.py, README.md and pyproject.toml.",
        "Set the author in pyproject.toml.",
        "Set the copyright holder in LICENSE.",
        "Set REPOSITORY in acme/__init__.py, and [project.urls] in pyproject.toml.",
        "Let your index trust release.yml: https://docs.pypi.org/trusted-publishers/",
        "If you write documentation, publish it yourself: no workflow does that.",
    ]


def test_a_project_without_placeholders_has_nothing_to_do(tool: Tool) -> None:
    options = ["--author", "Ann", "--description", "Counts.", "--repository", "https://x.org/a"]

    created = tool("fork", "acme", *options, "--dry-run").data
    text = tool("fork", "acme", *options, "--dry-run", "--format", "text").stdout

    assert created["to_do"] == []
    assert b"To do" not in text


def test_people_see_what_is_left_to_do(tool: Tool) -> None:
    text = tool("fork", "acme", "--dry-run", "--format", "text").stdout.decode()

    assert "To do before you publish:\n  * Describe the tool in acme/__init__.py" in text


def test_a_wheel_on_this_machine_is_a_placeholder(tool: Tool) -> None:
    (tool.cwd / "kit.whl").touch()

    created = tool("fork", "acme", "--kit", "dependency", "--kit-from", "kit.whl", "--dry-run").data

    assert any("require the kit from an index or a URL" in task for task in created["to_do"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--kit", "dependency"], "--kit dependency needs --kit-from"),
        (["--kit-from", PACKAGE], "--kit-from needs --kit dependency"),
        (["--kit", "dependency", "--kit-from", "no.whl"], "no.whl does not exist"),
        (["--kit", "dependency", "--kit-from", "other"], "neither a requirement on"),
    ],
)
def test_options_about_the_kit_have_to_fit_together(
    tool: Tool,
    options: list[str],
    message: str,
) -> None:
    mistake = mistake_in(tool("fork", "acme", *options))

    assert mistake["param"] == "--kit-from"
    assert message in mistake["message"]
    assert list(tool.cwd.iterdir()) == []


def test_links_that_lead_to_each_other_are_refused(tool: Tool) -> None:
    (tool.cwd / "loop").symlink_to("loop")
    (tool.cwd / "loop.whl").symlink_to("loop.whl")

    as_directory = tool("fork", "acme", "--to", "loop")
    as_wheel = tool("fork", "acme", "--kit", "dependency", "--kit-from", "loop.whl")

    assert as_directory.code == "UNSAFE_PATH"
    assert as_wheel.code == "VALIDATION_ERROR"


def test_every_mistake_is_reported_at_once(tool: Tool) -> None:
    ran = tool(
        "fork",
        "json",
        *("--command", "cd"),
        *("--with", "no-part"),
        *("--author", "."),
        *("--description", "a\nb"),
        *("--repository", "example.org"),
        *("--documentation", "https://x y"),
    )

    assert [mistake["param"] for mistake in ran.error["errors"]] == [
        "NAME",
        "--command",
        "--with",
        "--author",
        "--description",
        "--repository",
        "--documentation",
    ]
    assert "it is a module of Python's standard library" in ran.error["message"]
    assert list(tool.cwd.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--description", "d" * 101),
        ("--author", "A" * 101),
        ("--license-holder", "\x1b[31m"),
        ("--repository", f"https://example.org/{'a' * 200}"),
        ("--repository", 'https://example.org/"'),
    ],
)
def test_texts_are_limited(tool: Tool, option: str, text: str) -> None:
    assert mistake_in(tool("fork", "acme", option, text))["param"] == option


def test_the_longest_texts_are_accepted(tool: Tool) -> None:
    texts = ["--description", "d" * 100, "--author", "A" * 100]
    url = "https://example.org/"

    assert tool("fork", "acme", *texts, "--repository", url.ljust(200, "a"), "--dry-run").data


@pytest.mark.parametrize(
    ("name", "code"),
    [("", "INVALID_VALUE"), ("_", "INVALID_VALUE"), ("json", "NAME_TAKEN")],
)
def test_with_a_wrong_name_nothing_is_created(tool: Tool, name: str, code: str) -> None:
    mistake = mistake_in(tool("fork", "--command", "stock", "--to", "new", "--", name))

    assert (mistake["param"], mistake["code"]) == ("NAME", code)
    assert list(tool.cwd.iterdir()) == []


def test_names_that_look_like_unset_variables_are_refused(tool: Tool) -> None:
    ran = tool("fork", "null", "--command", "undefined", "--to", "None")

    parameters = {mistake["param"] for mistake in ran.error["errors"]}
    assert (ran.status, parameters) == (2, {"NAME", "--command", "--to"})
    assert list(tool.cwd.iterdir()) == []


def test_a_project_is_not_created_inside_of_the_checkout(tool: Tool) -> None:
    mistake = mistake_in(tool("fork", "acme", "--to", str(ROOT / "acme")))

    assert mistake["param"] == "--to"
    assert not (ROOT / "acme").exists()


def test_the_files_that_are_listed_are_all_that_there_is(tool: Tool) -> None:
    created = tool("fork", "acme").data

    on_disk = [path for path in files_below(tool.cwd / "acme") if not path.startswith(".git/")]
    assert on_disk == created["files"]
    assert os.listdir(tool.cwd) == ["acme"]
