"""sampletool/fork/names.py: a name that something else has is refused, and the error says what."""

import os
from pathlib import Path

import pytest

from sampletool.fork.names import installed_modules, mistakes_in_names
from sampletool.kit.program import PACKAGE
from sampletool.kit.project import ROOT
from tests.fork.support import make_choice

_CONSTRAINTS = (ROOT / "constraints.txt").read_text()


def mistakes_of(name: str, command: str = "stock", *parts: str) -> list[tuple[str, str, str]]:
    """Return the parameter, the code and the message of each mistake in these names."""
    choice = make_choice(name=name, command=command, parts=frozenset(parts))
    mistakes = mistakes_in_names(choice, _CONSTRAINTS)
    return [(mistake.param, mistake.code, mistake.message) for mistake in mistakes]


@pytest.mark.parametrize(
    "name",
    ["Acme", "a_b", "1a", "-", "a--b", "a-", "a b", "a/b", "..", "", "é", "a" * 41],
)
def test_a_malformed_name_is_refused(name: str) -> None:
    assert mistakes_of(name) == [("NAME", "INVALID_VALUE", f"Invalid name: {name!r}")]


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("json", "a module of Python's standard library"),
        ("concurrent", "a module of Python's standard library"),
        ("class", "a keyword of Python"),
        ("tests", "a directory of every project"),
        ("docs", "a directory of every project"),
        ("kit", "a directory of every project"),
        ("ls", "a subcommand of many programs, but `tool fork` has no subcommands"),
        ("upgrade", "a subcommand of many programs, but `tool fork` has no subcommands"),
        ("inventory", "a part of the new project"),
        ("typer", "a package that the new project installs"),
        ("pytest-xdist", "a package that the new project installs"),
        (PACKAGE, "the package of this tool"),
        ("alias", "a command of the shell"),
        ("ruff", "a development tool, or one of its files"),
    ],
)
def test_a_package_cannot_have_the_name_of_something_else(name: str, owner: str) -> None:
    message = f"The name {name} is taken: it is {owner}"

    assert mistakes_of(name) == [("NAME", "NAME_TAKEN", message)]


def test_a_package_cannot_have_the_name_of_a_part_that_comes_along() -> None:
    message = "The name state is taken: it is a part of the new project"

    assert mistakes_of("state", "stock", "state") == [("NAME", "NAME_TAKEN", message)]
    assert mistakes_of("state", "stock") == []


def test_only_names_in_directories_of_packages_are_installed_modules(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("packages/zebra", "packages/zebra-1.0.dist-info", "work/lion"):
        (tmp_path / name).mkdir(parents=True)
    for folder in ("packages", "work"):
        monkeypatch.syspath_prepend(tmp_path / folder)

    message = "The name zebra is taken: it is an installed Python package"
    assert mistakes_of("zebra") == [("NAME", "NAME_TAKEN", message)]
    assert mistakes_of("lion") == []


def test_a_directory_of_packages_that_cannot_be_read_is_ignored(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    readable = tmp_path / "readable"
    unreadable = tmp_path / "unreadable"
    (readable / "known-1.0.dist-info").mkdir(parents=True)
    (readable / "known").mkdir()
    unreadable.mkdir()
    list_directory = os.listdir

    def refuse_one(folder: str) -> list[str]:
        # Permissions do not stop root, so the refusal is made here.
        if folder == str(unreadable):
            raise PermissionError
        return list_directory(folder)

    path = [str(unreadable), str(tmp_path / "missing"), str(readable)]
    monkeypatch.setattr("sys.path", path)
    monkeypatch.setattr(os, "listdir", refuse_one)

    assert "known" in installed_modules()


@pytest.mark.parametrize(
    ("command", "owner"),
    [
        ("alias", "a command of the shell"),
        ("until", "a command of the shell"),
        ("venv", "a development tool, or one of its files"),
        ("pyproject", "a development tool, or one of its files"),
        ("pytest", "a development tool, or one of its files"),
    ],
)
def test_a_command_cannot_have_the_name_of_something_else(command: str, owner: str) -> None:
    message = f"The name {command} is taken: it is {owner}"
    assert mistakes_of("acme", command) == [("--command", "NAME_TAKEN", message)]


@pytest.mark.parametrize("command", ["json", "status"])
def test_a_command_can_have_the_name_of_a_module_or_a_subcommand(command: str) -> None:
    assert mistakes_of("acme", command) == []


def test_a_mistake_in_the_name_is_not_reported_again_for_the_command() -> None:
    assert [mistake[0] for mistake in mistakes_of("git", "git")] == ["NAME"]
    assert [mistake[0] for mistake in mistakes_of("Acme", "Acme")] == ["NAME"]
