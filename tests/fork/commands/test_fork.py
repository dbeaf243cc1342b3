"""tool fork: a whole project or nothing, made of what git tracks."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from sampletool.fork.commands.fork import installed_modules, mistakes_in
from sampletool.fork.project import TEMPLATE, Choice, offered_parts, project
from sampletool.fork.source import source_files
from sampletool.fork.writing import sweep
from sampletool.kit.contract.file_errors import EditRefused
from sampletool.kit.program import PACKAGE, PROGRAM
from sampletool.kit.project import ROOT
from sampletool.kit.testing.failing import failure_of
from sampletool.kit.testing.tool import Ran, Tool
from sampletool.kit.testing.trees import commit, copy_tree, make_environment, tracked_files

_LEFT_OVER = re.compile(
    rf"{PACKAGE}|\b{PROGRAM}\.toml|[/\"'`]\.{PROGRAM}\b|{PROGRAM.upper()}_[A-Z]"
    rf"|[`\"]{PROGRAM}[`\" ]|\b{PROGRAM} (config|lock|inventory|item|--)"
)


def made(tool: Tool, *args: str, name: str = "acme") -> Path:
    assert tool("fork", name, *args).data["effect"] == "created"
    return tool.cwd / name


def files_below(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())


def in_project(tree: Path, *command: str) -> str:
    ran = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-3000:]
    return ran.stdout


def test_it_has_the_kit_to_the_byte_and_a_list_that_proves_it(tool: Tool) -> None:
    tree = made(tool, "--command", "stock")

    kit = {path for path in files_below(ROOT / PACKAGE / "kit") if "__pycache__" not in path}
    assert {*files_below(tree / "acme" / "kit")} == kit | {"CHECKSUMS"}
    for path in kit:
        assert (tree / "acme" / "kit" / path).read_bytes() == (ROOT / PACKAGE / "kit" / path).read_bytes()
    in_project(tree, sys.executable, "-m", "acme.kit.checksums")
    (tree / "tests" / "kit" / "test_app.py").write_text("edited")
    edited = subprocess.run([sys.executable, "-m", "acme.kit.checksums"], cwd=tree, capture_output=True, check=False)
    assert b": tests/kit/test_app.py. " in edited.stderr


@pytest.mark.parametrize("parts", [[], offered_parts()])
def test_nothing_in_it_speaks_of_the_project_that_it_is_made_from(parts: list[str]) -> None:
    choice = Choice("acme-stock", "stock", frozenset(parts), "A", "D", "H", "github")

    files = project(source_files(), choice)

    license_text = files.pop("LICENSE").decode()
    assert re.search(rf"^Copyright \(c\) \d+ H\nCopyright \(c\) \d+ The {PACKAGE} maintainers$", license_text, re.M)
    left = [
        (path, found[0])
        for path, content in files.items()
        if not path.startswith("acme_stock/kit/")
        for found in _LEFT_OVER.finditer(f"/{path}\n{content.decode(errors='replace')}")
    ]
    assert {*left} == {("README.md", PACKAGE)}
    assert len([line for line in files["README.md"].decode().splitlines() if PACKAGE in line]) == 1
    assert [*filter(_LEFT_OVER.search, files)] == []


def test_metadata_that_cannot_be_changed_safely_are_reported() -> None:
    choice = Choice("acme", "acme", frozenset(), "A", "D", "H", "none")
    source = dict(source_files())
    template = source[f"{TEMPLATE}pyproject.template"]
    source[f"{TEMPLATE}pyproject.template"] = template.replace(b"description = ", b"description.short = ", 1)

    error = failure_of(lambda: project(source, choice))

    assert isinstance(error, EditRefused)
    assert error.context["key"] == "project.description"
    assert "project.description is a table, not a value" in error.message


def test_it_answers_by_its_own_name(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = made(tool, "--command", "stock", "--description", 'Counts """screws""" \\ bolts')
    monkeypatch.delenv("PYTHONPATH")
    python = str(make_environment(tree))
    monkeypatch.chdir(tool.cwd)

    # Each call is a process of another program, which the fork server cannot start: 100 ms of a processor each.
    outputs = {}
    for call in ("--help", "config --help", "help", "config get", "config set x", "manifest"):
        ran = subprocess.run([python, "-m", "acme", *call.split()], capture_output=True, text=True, check=False)
        assert ran.returncode != 1, ran.stdout + ran.stderr
        assert "stock" in ran.stdout
        assert [*_LEFT_OVER.finditer(ran.stdout + ran.stderr)] == [], call
        outputs[call] = ran.stdout
    assert 'Counts """screws""" \\ bolts' in outputs["--help"]


def test_what_is_said_about_it_has_an_upper_limit(tool: Tool) -> None:
    assert mistake(tool("fork", "acme", "--description", "d" * 101))["param"] == "--description"


@pytest.mark.parametrize("part", offered_parts())
def test_a_part_that_is_chosen_comes_along_and_no_other_also_inside_of_it(part: str) -> None:
    files = project(source_files(), Choice("acme", "acme", frozenset([part]), "A", "D", "H", "github"))

    folders = {folder for path in files for folder in path.split("/")[:-1]}
    assert folders & {"fork", *offered_parts()} == {part}
    assert f"acme/{part}/__init__.py" in files


def test_lines_about_parts_in_the_makefile_are_those_of_this_project() -> None:
    marks = tuple(f"# {part}" for part in offered_parts())
    own, template = (
        {line.replace("+=", ":=") for line in (folder / "Makefile").read_text().splitlines() if line.endswith(marks)}
        for folder in (ROOT, ROOT / PACKAGE / "fork" / "template")
    )

    assert own == template


def test_lines_about_parts_are_those_of_this_project() -> None:
    template = (ROOT / PACKAGE / "fork" / "template" / "pyproject.template").read_text().splitlines()
    marks = tuple(f"# {part}" for part in offered_parts())
    own = [line for line in (ROOT / "pyproject.toml").read_text().splitlines() if line.endswith(marks)]

    of_pyright = '    "sampletool/sample/example",  # sample'
    assert {*own} - {*template} <= {of_pyright}, "pyright is not needed there"
    assert [line for line in template if line.endswith(marks) and line not in own] == []


def test_without_parts_no_line_is_about_one() -> None:
    files = project(source_files(), Choice("acme", "acme", frozenset(), "A", "D", "H", "github"))

    assert b"psycopg" not in files["pyproject.toml"]
    assert b"EXTRAS" not in files["Makefile"]
    assert re.findall(rb"\((\w+)/", files["docs/index.md"]).count(b"kit") >= 7
    assert b" <!-- " not in files["docs/index.md"]


def test_metadata_is_that_of_the_new_project(tool: Tool) -> None:
    tree = made(tool, "--author", 'Ann "A" B', "--description", "Counts.", "--license-holder", "Acme \\1 Ltd")

    about = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    assert (about["name"], about["description"], about["authors"]) == ("acme", "Counts.", [{"name": 'Ann "A" B'}])
    assert about["scripts"] == {"acme": "acme.__main__:main"}
    assert re.search(r"^Copyright \(c\) \d{4} Acme \\1 Ltd$", (tree / "LICENSE").read_text(), re.MULTILINE)


def test_what_is_said_about_it_is_not_renamed() -> None:
    choice = Choice("acme", "acme", frozenset(), f"{PACKAGE} fans", PROGRAM, "H", "none")

    about = tomllib.loads(project(source_files(), choice)["pyproject.toml"].decode())["project"]
    assert (about["description"], about["authors"]) == (PROGRAM, [{"name": f"{PACKAGE} fans"}])


@pytest.mark.parametrize(("name", "command"), [("acme", f"my-{PROGRAM}"), (PROGRAM, "acme")])
def test_a_new_name_may_have_an_old_one_in_it(name: str, command: str) -> None:
    files = project(source_files(), Choice(name, command, frozenset(), "A", "D", "H", "none"))

    pyproject = tomllib.loads(files["pyproject.toml"].decode())
    assert pyproject["project"]["scripts"] == {command: f"{name}.__main__:main"}
    assert pyproject["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"] == [name]
    assert f"\n`{command} inventory list` shows" in files["README.md"].decode()


@pytest.mark.parametrize(("ci", "expected"), [("github", True), ("none", False)])
def test_workflows_are_there_where_they_are_asked_for(tool: Tool, ci: str, expected: bool) -> None:
    files = tool("fork", "acme", "--ci", ci, "--dry-run").data["files"]

    assert (".github/workflows/check.yml" in files) == expected


def test_the_first_commit_has_everything_and_nobody_s_ignored_names_or_hooks_matter(tool: Tool, home: Path) -> None:
    (home / "ignored").write_text("docs/\n*.toml\n")
    (home / "home" / ".gitconfig").write_text(
        f"[core]\nexcludesFile = {home}/ignored\nhooksPath = {home}\n[commit]\ngpgSign = true\n[gpg]\nprogram = false\n"
    )
    (home / "pre-commit").write_text("#!/bin/sh\nexit 1\n")
    (home / "pre-commit").chmod(0o755)

    data = tool("fork", "acme", GIT_DIR=str(ROOT / ".git"), GIT_INDEX_FILE=str(home / "index")).data

    tree = tool.cwd / "acme"
    assert sorted(tracked_files(tree)) == data["files"] == sorted(set(files_below(tree)) - set(files_below_git(tree)))
    assert in_project(tree, "git", "log", "--format=%s") == "Begin\n"
    assert os.access(tree / ".ci" / "run", os.X_OK)


def files_below_git(tree: Path) -> list[str]:
    return [f".git/{name}" for name in files_below(tree / ".git")]


def test_where_git_knows_no_name_the_author_commits(tool: Tool, home: Path) -> None:
    (home / "home" / ".gitconfig").write_text("[user]\nuseConfigOnly = true\n")

    assert tool("fork", "acme", "--author", "Ann", GIT_CONFIG_SYSTEM="/dev/null").status == 0

    assert in_project(tool.cwd / "acme", "git", "log", "--format=%an %cn") == "Ann Ann\n"


def test_where_git_knows_the_name_of_an_author_only_it_is_kept(tool: Tool, tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path / "nowhere"), "GIT_CONFIG_SYSTEM": "/dev/null"}
    environ |= {"GIT_AUTHOR_NAME": "Bob", "GIT_AUTHOR_EMAIL": "bob@example.org"}

    ran = Tool({**tool.environ, **environ}, tool.cwd)("fork", "acme", "--author", "Ann")

    assert ran.status == 0, ran.error
    assert in_project(tool.cwd / "acme", "git", "log", "--format=%an %cn") == "Bob Ann\n"


def test_in_a_hook_of_git_it_has_all_that_it_needs(tool: Tool) -> None:
    there = str(made(tool, name="there") / ".git" / "objects")

    in_hook = tool("fork", "there", "--to", "acme", GIT_QUARANTINE_PATH=there, GIT_ALTERNATE_OBJECT_DIRECTORIES=there)

    assert in_hook.status == 0
    in_project(tool.cwd / "acme", "git", "fsck", "--strict")


def test_settings_for_all_repositories_do_not_change_what_is_committed(tool: Tool, home: Path) -> None:
    (home / "attributes").write_text("* filter=none\n")
    (home / "home" / ".gitconfig").write_text(
        f"[core]\nautocrlf = true\nsafecrlf = true\nattributesFile = {home}/attributes\n"
        '[filter "none"]\nclean = false\nrequired = true\n'
    )

    assert tool("fork", "acme").status == 0


def test_only_what_git_tracks_is_taken(tool: Tool, tmp_path: Path) -> None:
    checkout = copy_tree(ROOT, tmp_path / "checkout")
    commit(checkout)
    for name in (f"{PACKAGE}/kit/mine.py", "tests/kit/notes.txt", "docs/kit/secret.md"):
        (checkout / name).write_text("mine")

    # Of another checkout, which the fork server has not loaded.
    assert tool("fork", "acme", PYTHONPATH=str(checkout)).status == 0

    assert not {"mine.py", "notes.txt", "secret.md"} & {path.name for path in (tool.cwd / "acme").rglob("*")}


def test_a_directory_of_packages_that_cannot_be_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readable, unreadable = tmp_path / "readable", tmp_path / "unreadable"
    (readable / "known-1.0.dist-info").mkdir(parents=True)
    (readable / "known").mkdir()
    unreadable.mkdir()
    list_directory = os.listdir

    def refuse_one(folder: str) -> list[str]:
        # Permissions do not stop root, so the refusal is made here.
        if folder == str(unreadable):
            raise PermissionError
        return list_directory(folder)

    monkeypatch.setattr(sys, "path", [str(unreadable), str(tmp_path / "missing"), str(readable)])
    monkeypatch.setattr(os, "listdir", refuse_one)

    assert "known" in installed_modules()


def test_what_is_neither_a_checkout_nor_a_wheel_is_refused(tool: Tool, tmp_path: Path) -> None:
    shutil.copytree(ROOT / PACKAGE, tmp_path / "copy" / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))

    ran = tool("fork", "acme", PYTHONPATH=str(tmp_path / "copy"))

    assert (ran.status, ran.code) == (4, "GIT_FAILED")
    assert [*tool.cwd.iterdir()] == []


def test_without_git_nothing_is_made(tool: Tool, home: Path) -> None:
    assert tool("fork", "acme", PATH=str(home)).code == "COMMAND_NOT_FOUND"
    assert [*tool.cwd.iterdir()] == []


def test_a_forecast_lists_the_same_files_and_makes_none(tool: Tool) -> None:
    forecast = tool("fork", "acme", "--dry-run").data
    assert [*tool.cwd.iterdir()] == []

    assert tool("fork", "acme").data == forecast


def mistake(ran: Ran) -> dict[str, Any]:
    assert (ran.status, ran.code) == (2, "VALIDATION_ERROR")
    (error,) = ran.error["errors"]
    assert isinstance(error, dict)
    return error


def mistakes_of(name: str, command: str) -> list[tuple[str, str]]:
    """Return the parameter and the code of each mistake in these names."""
    choice = Choice(name, command, frozenset(), "A", "D", "A", "none")
    pins = (ROOT / "constraints.txt").read_text()
    return [(mistake.param, mistake.code) for mistake in mistakes_in(choice, Path("/new"), pins)]


@pytest.mark.parametrize("name", ["Acme", "a_b", "1a", "-", "a--b", "a-", "a b", "a/b", "..", "", "é", "a" * 41])
def test_a_bad_name_is_refused(name: str) -> None:
    assert mistakes_of(name, "stock") == [("NAME", "INVALID_VALUE")]


@pytest.mark.parametrize(
    "name", ["json", "class", "tests", "docs", "kit", "typer", "pytest-xdist", PACKAGE, "concurrent"]
)
def test_a_name_that_something_else_has_is_refused(name: str) -> None:
    assert mistakes_of(name, "stock") == [("NAME", "NAME_TAKEN")]


def test_the_name_of_an_installed_package_is_refused_and_that_of_a_directory_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("packages/zebra", "packages/zebra-1.0.dist-info", "work/lion"):
        (tmp_path / name).mkdir(parents=True)
    for folder in ("packages", "work"):
        monkeypatch.syspath_prepend(tmp_path / folder)

    assert mistakes_of("zebra", "stock") == [("NAME", "NAME_TAKEN")]
    assert mistakes_of("lion", "stock") == []


@pytest.mark.parametrize("name", ["alias", "until", "venv", "pyproject", "ruff", "pytest", "python3"])
def test_a_command_whose_name_means_something_else_is_refused(name: str) -> None:
    assert mistakes_of("acme", name) == [("--command", "NAME_TAKEN")]


@pytest.mark.parametrize(("name", "code"), [("", "INVALID_VALUE"), ("-", "INVALID_VALUE"), ("json", "NAME_TAKEN")])
def test_with_a_bad_name_nothing_is_made(tool: Tool, name: str, code: str) -> None:
    error = mistake(tool("fork", "--command", "stock", "--to", "new", "--", name))

    assert (error["param"], error["code"]) == ("NAME", code)
    assert [*tool.cwd.iterdir()] == []


def test_what_a_program_writes_for_no_value_is_refused_at_each_place_of_a_name(tool: Tool) -> None:
    ran = tool("fork", "null", "--command", "undefined", "--to", "None")

    assert (ran.status, {error["param"] for error in ran.error["errors"]}) == (2, {"NAME", "--command", "--to"})
    assert [*tool.cwd.iterdir()] == []


def test_a_command_that_is_called_like_a_bad_name_is_no_second_mistake(tool: Tool) -> None:
    assert mistake(tool("fork", "Acme"))["param"] == "NAME"
    assert mistake(tool("fork", "git"))["param"] == "NAME"
    assert mistake(tool("fork", "acme", "--command", "git"))["param"] == "--command"


def test_every_mistake_is_reported_at_once(tool: Tool) -> None:
    ran = tool("fork", "acme", "--command", "cd", "--with", "no-part", "--author", ".", "--description", "a\nb")

    told = [error["param"] for error in ran.error["errors"]]
    assert told == ["--command", "--with", "--author", "--description"]
    assert [*tool.cwd.iterdir()] == []


def test_it_is_not_made_inside_the_checkout_that_it_is_made_from(tool: Tool) -> None:
    error = mistake(tool("fork", "acme", "--to", str(ROOT / "acme")))

    assert error["param"] == "--to"
    assert not (ROOT / "acme").exists()


@pytest.mark.parametrize("kind", ["file", "full", "link"])
def test_what_is_there_is_not_touched(tool: Tool, kind: str) -> None:
    place = tool.cwd / "acme"
    if kind == "file":
        place.write_text("mine")
    elif kind == "full":
        place.mkdir()
        (place / "mine").touch()
    else:
        (tool.cwd / "elsewhere").mkdir()
        (tool.cwd / "elsewhere" / "mine").touch()
        place.symlink_to("elsewhere")
    before = sorted(tool.cwd.rglob("*"))

    for more in ([], ["--dry-run"]):
        assert tool("fork", "acme", *more).code == "OUTPUT_EXISTS"

    assert sorted(tool.cwd.rglob("*")) == before


def test_an_empty_directory_is_used_also_the_current_one(tool: Tool) -> None:
    assert tool("fork", "acme", "--to", ".").data["next"][:2] == [f"cd {tool.cwd}", "make check test"]
    assert (tool.cwd / "acme" / "__init__.py").exists()


def test_the_next_steps_can_be_pasted(tool: Tool) -> None:
    assert tool("fork", "acme", "--to", "a b", "--dry-run").data["next"][0] == f"cd '{tool.cwd}/a b'"


def test_a_directory_to_put_it_in_has_to_exist(tool: Tool) -> None:
    assert tool("fork", "acme", "--to", "no/where").code == "FILE_NOT_FOUND"
    assert [*tool.cwd.iterdir()] == []


def test_of_two_at_once_one_makes_it_and_the_other_changes_nothing(tool: Tool) -> None:
    call, place = ("fork", "acme", "--command"), tool.cwd / "acme"
    # Watch only the place that both want: to stop at every file beside it takes four times as long.
    with tool.stepped(*call, "one", watch=place) as one, tool.stepped(*call, "two", watch=place) as two:
        for each in (one, two):
            each.run_until("os.rename")
        first, second = one.finish(), two.finish()

    assert (first.status, second.status) == (0, 6)
    assert b"OUTPUT_EXISTS" in second.stdout
    assert os.listdir(tool.cwd) == ["acme"]
    assert 'PROGRAM = "one"' in (tool.cwd / "acme" / "acme" / "__init__.py").read_text()


def test_kill_9_leaves_nothing_in_the_directory_and_it_can_be_made_again(tool: Tool) -> None:
    place = tool.cwd / "acme"
    with tool.stepped("fork", "acme", watch=place) as stepped:
        stepped.run_until("os.rename")
        stepped.kill()
    assert not place.exists()
    (left,) = tool.cwd.iterdir()

    sweep(place)
    assert left.exists(), "a living call may still write it"
    os.utime(left, (0, 0))
    sweep(tool.cwd / "other")
    assert left.exists(), "it is not litter of this place"
    tool("fork", "acme")

    assert os.listdir(tool.cwd) == ["acme"]


@pytest.mark.leaves_litter
def test_a_signal_ends_the_writing(tool: Tool) -> None:
    with tool.stepped("fork", "acme", watch=tool.cwd) as stepped:
        stepped.run_until(lambda event: event.path.endswith("README.md"))
        stepped.signal(15)
        following = stepped.step()

    assert following is not None
    assert following.path.endswith(".fork"), "the next thing that it touches is what it removes"


def test_a_signal_leaves_nothing(tool: Tool) -> None:
    with tool.stepped("fork", "acme", watch=tool.cwd) as stepped:
        stepped.run_until(lambda event: event.path.endswith("README.md"))
        stepped.signal(15)
        ended = stepped.finish()

    assert ended.status == -15
    assert [*tool.cwd.iterdir()] == []
